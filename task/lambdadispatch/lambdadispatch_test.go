package lambdadispatch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/thaw-mcp/thaw/task"
)

const functionARN = "arn:aws:lambda:eu-west-1:111122223333:function:worker"

func config(t *testing.T, h http.HandlerFunc) aws.Config {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &s.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "hunter2", ""),
	}
}

// What may be sent is sent as an asynchronous invocation; what has to wait is left to the
// sweep (tasks rule 22).
func TestDispatch(t *testing.T) {
	var calls atomic.Int64
	cfg := config(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		b, err := io.ReadAll(r.Body)
		m, parse := task.ParseMessage(string(b))
		if err != nil || parse != nil || m != (task.Message{ID: "id-1"}) || r.Header.Get("X-Amz-Invocation-Type") != "Event" ||
			!strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/lambda/") || !strings.Contains(r.URL.Path, "worker/invocations") {
			t.Errorf("%s %s %v, %v, %v", r.URL.Path, b, r.Header, err, parse)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	d, err := New(cfg, functionARN)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Dispatch(t.Context(), "id-1", 0); err != nil || calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	if err := d.Dispatch(t.Context(), "id-1", time.Second); err != nil || calls.Load() != 1 {
		t.Errorf("a delayed one: %v after %d calls", err, calls.Load())
	}
}

// TestFailures is what Lambda can say, and whether trying again can help (tasks rule 7).
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		status int
		name   string
		never  bool
	}{
		{404, "ResourceNotFoundException", true},
		{403, "AccessDeniedException", true},
		{400, "InvalidParameterValueException", true},
		{429, "TooManyRequestsException", false},
		{500, "ServiceException", false},
		{403, "ExpiredTokenException", false},
	} {
		cfg := config(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", c.name)
			w.WriteHeader(c.status)
			fmt.Fprint(w, `{"Message":"because of the weather"}`)
		})
		d, err := New(cfg, "worker")
		if err != nil {
			t.Fatal(err)
		}
		err = d.Dispatch(t.Context(), "id-1", 0)
		if err == nil || errors.Is(err, task.ErrUndeliverable) != c.never || !strings.Contains(err.Error(), c.name+": ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestFunctions(t *testing.T) {
	for _, c := range []struct {
		function, region string
		ok               bool
	}{
		{"worker", "", true}, {"worker:live", "", true}, {functionARN, "eu-west-1", true}, {functionARN + ":live", "eu-west-1", true},
		{strings.Repeat("a", 64) + ":" + strings.Repeat("b", 128), "", true}, {"A_z-09:B_y-18", "", true},
		{strings.Repeat("a", 65), "", false}, {"a:" + strings.Repeat("b", 129), "", false}, {"a:b:c", "", false}, {functionARN + ":b:c", "", false},
		{"", "", false}, {"a b", "", false}, {"wörker", "", false}, {"worker\n", "", false}, {":live", "", false}, {"worker:", "", false}, {"https://worker", "", false},
		{"arn:aws:lambda::111122223333:function:worker", "", false}, {"arn:aws:lambda:eu-west-1:111122223333:layer:x", "", false},
		{"arn:aws:sqs:eu-west-1:111122223333:worker", "", false},
	} {
		region, err := parse(c.function)
		_, newErr := New(aws.Config{}, c.function)
		if region != c.region || (err == nil) != c.ok || (newErr == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "allowed are NAME") {
			t.Errorf("%q: %q, %v, %v", c.function, region, err, newErr)
		}
	}
}

func TestScheme(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	s := Scheme()
	if d, err := s.Open(t.Context(), functionARN); s.Name != "lambda" || err != nil || d == nil {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := s.Open(t.Context(), "a b"); err == nil {
		t.Error("no function was taken")
	}
}
