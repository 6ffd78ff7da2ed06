package dynamostore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/thaw-mcp/thaw/task"
)

const (
	accessKey = "AKIDEXAMPLE"
	secretKey = "wJalrXUtnFEMIK7MDENG"
)

// service is a DynamoDB that answers what it is told.
type service struct {
	*httptest.Server
	calls atomic.Int64
}

func newService(t *testing.T, answer http.HandlerFunc) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) store(t *testing.T, o *Options) *Store {
	t.Helper()
	store, err := New(aws.Config{
		Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, "session"), BaseEndpoint: &s.URL,
		RetryMaxAttempts: 9, // not ours
	}, "tasks", o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		table string
		good  bool
	}{
		{"abc", true}, {"Tasks_2.new-1", true}, {strings.Repeat("x", 255), true},
		{"", false}, {"ab", false}, {strings.Repeat("x", 256), false}, {"täsks", false}, {"tasks ", false}, {"tasks\n", false}, {"a/b/c", false},
		{"arn:aws:dynamodb:eu-west-1:111122223333:table/tasks", false},
	} {
		s, err := New(aws.Config{}, c.table, nil)
		switch {
		case c.good && (err != nil || s.attempt != 5*time.Second):
			t.Errorf("%q: %v", c.table, err)
		case !c.good && (err == nil || !strings.Contains(err.Error(), "allowed are 3 to 255 characters") || s != nil):
			t.Errorf("%q: %v, %v; want an error that says what is allowed", c.table, s, err)
		}
	}
}

func TestScheme(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Target") != "DynamoDB_20120810.GetItem" || !strings.Contains(r.Header.Get("Authorization"), "Credential="+accessKey) ||
			!strings.Contains(r.Header.Get("Authorization"), "/eu-central-1/dynamodb/") {
			t.Errorf("%s %s", r.Header.Get("X-Amz-Target"), r.Header.Get("Authorization"))
		}
		io.WriteString(w, `{}`)
	})
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": "", "AWS_REGION": "eu-central-1",
		"AWS_ENDPOINT_URL_DYNAMODB": s.URL, "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
		if value == "" {
			os.Unsetenv(name)
		}
	}
	scheme := Scheme()
	if scheme.Name != "dynamodb" || !strings.HasPrefix(scheme.Usage, "dynamodb:") {
		t.Errorf("%+v", scheme)
	}
	store, err := scheme.Open(t.Context(), "tasks")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := store.(task.Sweeper); !ok {
		t.Error("it lists nothing that is due")
	}
	if s.calls.Load() != 0 {
		t.Error("opening called DynamoDB")
	}
	if _, err := store.Head(t.Context(), "t"); !errors.Is(err, task.ErrNotFound) || s.calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, s.calls.Load())
	}
	if store, err := scheme.Open(t.Context(), ""); err == nil || store != nil {
		t.Errorf("opened %v, %v", store, err)
	}
}

// A connection that died while the instance was frozen costs one attempt.
func TestDeadConnection(t *testing.T) {
	var dead atomic.Bool
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		if dead.CompareAndSwap(false, true) {
			_, _ = io.Copy(io.Discard, r.Body) // or the server would not see that the client is gone
			<-r.Context().Done()
			return
		}
		io.WriteString(w, `{"Item":{"p":{"S":"T#t"},"s":{"S":"H"},"v":{"N":"3"}}}`)
	})
	h, err := s.store(t, &Options{Attempt: 100 * time.Millisecond}).Head(t.Context(), "t")
	if err != nil || h.Version != 3 || s.calls.Load() != 2 {
		t.Errorf("version %d, %v after %d calls", h.Version, err, s.calls.Load())
	}
}

func TestNoSecretsInErrors(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"The Canonical String should have been x-amz-security-token:session"}`)
	})
	store := s.store(t, nil)
	h, u := task.Head{ID: "secret-id", Message: "secret"}, task.Use{Call: "secret-call", Round: 1, Write: [16]byte{1}, Deadline: time.Now(), Expires: time.Now()}
	_, headErr := store.Head(t.Context(), h.ID)
	_, partsErr := store.Parts(t.Context(), h.ID, task.PartCall, "", 0, 0)
	_, dueErr := store.Due(t.Context(), time.Now(), 0, 1)
	_, _, claimErr := store.Claim(t.Context(), u)
	for name, err := range map[string]error{
		"create": store.Create(t.Context(), h, task.Part{Data: []byte("secret")}), "commit": store.Commit(t.Context(), time.Now(), h),
		"head": headErr, "parts": partsErr, "due": dueErr, "claim": claimErr,
		"finish": store.Finish(t.Context(), u, []byte("secret")), "release": store.Release(t.Context(), u),
	} {
		if err == nil || !strings.Contains(err.Error(), "InvalidSignatureException") || !strings.Contains(err.Error(), "tasks") {
			t.Errorf("%s: %v, want what was wrong and where", name, err)
			continue
		}
		for _, secret := range []string{"secret", "session", secretKey, accessKey} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: %v tells %s", name, err, secret)
			}
		}
	}
}

// What is too large is refused before anything is written.
func TestTooLarge(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{}`) })
	store := s.store(t, nil)
	h := task.Head{ID: "t", Version: 2, Outcome: &task.OutcomeRef{Inline: make([]byte, maxHead)}}
	for name, err := range map[string]error{
		"create": store.Create(t.Context(), h, task.Part{Data: []byte("call")}), "commit": store.Commit(t.Context(), time.Now(), h, task.Part{Data: []byte("call")}),
	} {
		if !errors.Is(err, task.ErrTooLarge) || !strings.Contains(err.Error(), "allowed are 393216") || s.calls.Load() != 0 {
			t.Errorf("%s: %v after %d calls, want ErrTooLarge and none", name, err, s.calls.Load())
		}
	}
	h.Outcome.Inline = make([]byte, maxHead-1024)
	if err := store.Create(context.Background(), h); err != nil {
		t.Errorf("a head below that: %v", err)
	}
}
