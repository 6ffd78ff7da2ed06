package s3cloud_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/thaw-mcp/thaw/functions/provision/s3cloud"
)

const network = "net-0123456789abcdef"

// cloud is one over a service that answers as S3 does where no emulator can be brought to, one
// answer a request: a status and a body. The life of an environment is tested against an
// emulator, in e2e.
func cloud(t *testing.T, answers ...answer) *s3cloud.Cloud {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		if len(answers) == 0 {
			t.Errorf("one request too many: %s %s", r.Method, r.URL)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		a := answers[0]
		answers = answers[1:]
		w.WriteHeader(a.status)
		if _, err := io.WriteString(w, a.body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(func() {
		server.Close()
		if len(answers) > 0 {
			t.Errorf("%d requests too few", len(answers))
		}
	})
	client := s3.NewFromConfig(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	}, func(o *s3.Options) { o.UsePathStyle = true })
	return s3cloud.New(client, "bucket", "p/", nil)
}

type answer struct {
	status int
	body   string
}

var (
	put       = answer{status: 200}
	there     = answer{412, `<Error><Code>PreconditionFailed</Code></Error>`}
	conflict  = answer{409, `<Error><Code>ConditionalRequestConflict</Code></Error>`}
	forbidden = answer{403, `<Error><Code>AccessDenied</Code></Error>`}
)

func listed(names ...string) answer {
	b := strings.Builder{}
	b.WriteString(`<ListBucketResult><IsTruncated>false</IsTruncated>`)
	for _, name := range names {
		b.WriteString(`<Contents><Key>p/` + network + `/` + name + `</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>`)
	}
	return answer{200, b.String() + `</ListBucketResult>`}
}

func TestCreateNetwork(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []answer
		ok      bool
	}{
		{"made", []answer{put}, true},
		{"there", []answer{there}, true},
		{"made by another at this moment", []answer{conflict, there}, true},
		{"deleted by another at this moment", []answer{conflict, put}, true},
		{"never settled", []answer{conflict, conflict, conflict, conflict, conflict}, false},
		{"forbidden", []answer{forbidden}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, err := cloud(t, c.answers...).CreateNetwork(t.Context(), "eu-west1", "token")
			if (err == nil) != c.ok || !strings.HasPrefix(id, "net-") {
				t.Errorf("%q, %v", id, err)
			}
		})
	}
}

// What was put before an answer was lost is not put again.
func TestStartMachinesAgain(t *testing.T) {
	machines, err := cloud(t, listed("network.json", "machine-1.json"), put).StartMachines(t.Context(), network, "small", 2, "")
	if err != nil || len(machines) != 2 {
		t.Errorf("%q, %v", machines, err)
	}
	if _, err := cloud(t, listed()).StartMachines(t.Context(), network, "small", 2, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("machines in a network that is gone: %v", err)
	}
}

func TestDestroyFails(t *testing.T) {
	failed := answer{200, `<DeleteResult><Error><Key>p/x</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>`}
	if err := cloud(t, listed("network.json"), failed).Destroy(t.Context(), network); err == nil || !strings.Contains(err.Error(), "p/x: AccessDenied: no") {
		t.Error(err)
	}
	if err := cloud(t, listed("network.json"), forbidden).Destroy(t.Context(), network); err == nil {
		t.Error("a request that failed deleted something")
	}
	if err := cloud(t, answer{200, `<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>`}).Destroy(t.Context(), network); err == nil {
		t.Error("part of a network was destroyed")
	}
}

func TestRefused(t *testing.T) {
	for _, id := range []string{"", ".", "..", "mine", "../" + network, network + "/..", network + "\n"} {
		c := cloud(t)
		if err := c.Destroy(t.Context(), id); err == nil {
			t.Errorf("%q was destroyed", id)
		}
		if _, err := c.StartMachines(t.Context(), id, "small", 1, ""); err == nil {
			t.Errorf("machines were started in %q", id)
		}
		if _, err := c.Healthy(t.Context(), id, nil); err == nil {
			t.Errorf("%q is healthy", id)
		}
	}
}
