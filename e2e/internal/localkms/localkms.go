// Package localkms runs local-kms, a key service that speaks as AWS KMS does, in the
// process of a test. Its settings are global, so all of a process's is of one account and
// region.
package localkms

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	localkms "github.com/nsmithuk/local-kms/src"
	"github.com/nsmithuk/local-kms/src/config"
	"github.com/nsmithuk/local-kms/src/data"
)

const (
	region              = "eu-west-1"
	accessKey, password = "AKIDEXAMPLE", "wJalrXUt"
)

// Service is a key service with a database of its own.
type Service struct{ database *data.Database }

// Start starts a service that ends with the test.
func Start(t testing.TB) *Service {
	t.Helper()
	config.AWSRegion, config.AWSAccountId, config.DatabasePath = region, "111122223333", filepath.Join(t.TempDir(), "kms")
	s := &Service{data.NewDatabase(config.DatabasePath)}
	t.Cleanup(s.database.Close)
	return s
}

// NewKey makes a key for states and returns its ARN.
func (s *Service) NewKey(t testing.TB) string {
	t.Helper()
	door := s.Door(t)
	client := kms.New(kms.Options{Region: region, BaseEndpoint: &door.url,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, password, "")})
	out, err := client.CreateKey(t.Context(), &kms.CreateKeyInput{KeySpec: types.KeySpecHmac256, KeyUsage: types.KeyUsageTypeGenerateVerifyMac})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.KeyMetadata.Arn)
}

// Door is one process's way to the service. It counts what passes, and can be shut. It is
// safe for concurrent use.
type Door struct {
	service *Service
	url     string
	calls   atomic.Int64
	shut    atomic.Pointer[http.HandlerFunc]
}

// Door opens another way to the service.
func (s *Service) Door(t testing.TB) *Door {
	t.Helper()
	d := &Door{service: s}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	d.url = server.URL
	return d
}

func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GenerateMac") {
		d.calls.Add(1)
	}
	if shut := d.shut.Load(); shut != nil {
		(*shut)(w, r)
		return
	}
	localkms.HandleRequest(w, r, d.service.database)
}

// Env is the environment of a process that goes through the door.
func (d *Door) Env() []string {
	return []string{"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + password, "AWS_ENDPOINT_URL_KMS=" + d.url}
}

// Calls is how often GenerateMac was called since the last time somebody asked.
func (d *Door) Calls() int64 { return d.calls.Swap(0) }

// Shut lets answer stand in for the service, until it is nil.
func (d *Door) Shut(answer http.HandlerFunc) {
	if answer == nil {
		d.shut.Store(nil)
		return
	}
	d.shut.Store(&answer)
}
