package doors

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/internal/gatewaysim"
	"github.com/thaw-mcp/thaw/internal/lambdasim"

	// What the fixture server is made of: the go command keeps the results of these tests as long
	// as what they import stays the same, and does not see what they build.
	_ "github.com/thaw-mcp/thaw/conformance/fixture"
	_ "github.com/thaw-mcp/thaw/runtime/awskit"
	_ "github.com/thaw-mcp/thaw/runtime/localkit"
	_ "github.com/thaw-mcp/thaw/runtime/serve"
)

var folder string // of the binaries

func TestMain(m *testing.M) {
	if os.Getenv(asLeaver) != "" {
		leave()
		os.Exit(1)
	}
	var err error
	if folder, err = os.MkdirTemp("", "thaw-doors-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder) // what stays is a temporary file
	os.Exit(code)
}

// deployed is the fixture server with the build tag that a deployment has.
var deployed = sync.OnceValues(func() (string, error) { return build("deployed", "lambda.norpc") })

// withSQLite is the fixture server with a store that sandboxes can share without a cloud.
var withSQLite = sync.OnceValues(func() (string, error) { return build("sqlite", "") })

func build(name, tags string) (string, error) {
	binary := filepath.Join(folder, name)
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-tags", tags, "-o", binary, "github.com/thaw-mcp/thaw/conformance/server")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// start makes a function of the fixture server with these settings beside those that have to be.
func start(t *testing.T, binary func() (string, error), c lambdasim.Config) *lambdasim.Function {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	c.Program = program
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	// The last of one name counts.
	c.Env = append([]string{"THAW_AUTH=none", "THAW_STORE=none", "THAW_STATE_KEY=none"}, c.Env...)
	log := &lines{}
	c.Log = log
	f := lambdasim.New(c)
	t.Cleanup(func() {
		f.Close()
		if t.Failed() {
			t.Logf("the function logged\n%s", log)
		}
	})
	return f
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, p...)
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.all[max(0, len(l.all)-20_000):])
}

// door is a front door that listens.
type door struct {
	name    string
	url     string // before /mcp
	streams bool
}

// doorsOf opens the front doors of a function, of which some stream if streaming is on.
func doorsOf(t *testing.T, f gatewaysim.Lambda, streaming string) []door {
	t.Helper()
	on := streaming == "on"
	var all []door
	for _, d := range []struct {
		name    string
		h       http.Handler
		prefix  string
		streams bool
	}{
		{"Function URL", gatewaysim.FunctionURL(f, &gatewaysim.URLOptions{Streaming: on}), "", on},
		{"HTTP API", gatewaysim.HTTPAPI(f, nil), "", false},
		{"REST API", gatewaysim.RESTAPI(f, &gatewaysim.RESTOptions{Streaming: on}), "/prod", on},
		{"load balancer", gatewaysim.ALB(f, nil), "", false},
		{"load balancer, multi-value headers", gatewaysim.ALB(f, &gatewaysim.ALBOptions{MultiValue: true}), "", false},
	} {
		s := httptest.NewServer(d.h)
		t.Cleanup(s.Close)
		all = append(all, door{d.name, s.URL + d.prefix, d.streams})
	}
	return all
}

// everywhere runs a test at every door of a function with these settings, in both modes.
func everywhere(t *testing.T, test func(t *testing.T, d door), env ...string) {
	for _, mode := range []string{"off", "on"} {
		f := start(t, deployed, lambdasim.Config{Env: append([]string{"THAW_LAMBDA_STREAMING=" + mode}, env...)})
		for _, d := range doorsOf(t, f, mode) {
			t.Run("streaming "+mode+"/"+d.name, func(t *testing.T) { test(t, d) })
		}
	}
}

const keyARN = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"

// kms is a key service that has one key and makes codes with it. It returns the settings that
// have a function use it.
func kms(t *testing.T) []string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			KeyID        string `json:"KeyId"`
			MacAlgorithm string
			Message      []byte
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Amz-Target") != "TrentService.GenerateMac" {
			t.Errorf("no GenerateMac: %v", err)
		}
		mac := hmac.New(sha256.New, []byte("the key"))
		mac.Write(in.Message)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if err := json.NewEncoder(w).Encode(map[string]any{"KeyId": in.KeyID, "MacAlgorithm": in.MacAlgorithm, "Mac": mac.Sum(nil)}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return []string{"THAW_STATE_KEY=awskms:" + keyARN, "AWS_ENDPOINT_URL_KMS=" + s.URL}
}
