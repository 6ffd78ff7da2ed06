package s3files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/s3files"
)

// service answers as S3 would in the cases that no emulator can be brought to. What the
// contract says is tested against one, in e2e.
type service struct {
	etags  map[string]string // by request path: of objects
	status map[string]int    // by request path: of a HEAD, where not 200 or 404
	answer string            // to DeleteObjects; "" drops the connection

	mu       sync.Mutex
	requests []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path+" "+string(body))
	s.mu.Unlock()
	if r.Method == http.MethodPost {
		if s.answer == "" {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`+s.answer+`</DeleteResult>`)
		return
	}
	etag, there := s.etags[r.URL.Path]
	switch status := s.status[r.URL.Path]; {
	case status != 0:
		w.WriteHeader(status)
	case !there && r.URL.Path != "/bucket":
		w.WriteHeader(http.StatusNotFound)
	case etag != "":
		w.Header().Set("ETag", etag)
	}
}

// bucket is the bucket "bucket" of s, below "p/".
func bucket(t *testing.T, s *service) *s3files.Bucket {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client := s3.New(s3.Options{
		Region: "eu-central-1", BaseEndpoint: &server.URL, UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	})
	return s3files.New(client, "bucket", "p/")
}

func TestLook(t *testing.T) {
	s := &service{
		etags:  map[string]string{"/bucket/p/a": `"1"`, "/bucket/p/no-etag": ""},
		status: map[string]int{"/bucket/p/denied": http.StatusForbidden, "/bucket/p/broken": http.StatusInternalServerError},
	}
	tooLong := strings.Repeat("x", 1023)
	found := bucket(t, s).Look(t.Context(), []string{"a", "missing", "denied", "broken", "no-etag", tooLong})
	if found[0] != (deletefiles.Found{Version: `"1"`}) {
		t.Errorf("%+v", found[0])
	}
	for _, i := range []int{1, 5} {
		if !errors.Is(found[i].Err, fs.ErrNotExist) {
			t.Errorf("%d: %v, want fs.ErrNotExist", i, found[i].Err)
		}
	}
	for _, i := range []int{2, 3, 4} {
		if found[i].Err == nil || errors.Is(found[i].Err, fs.ErrNotExist) {
			t.Errorf("%d: %v, want an outage", i, found[i].Err)
		}
	}
	if all := strings.Join(s.requests, "\n"); strings.Contains(all, tooLong) {
		t.Error("S3 was asked for a key that it cannot have")
	}
}

// Without the bucket nothing is there, and that is no finding about files.
func TestMissingBucket(t *testing.T) {
	for name, status := range map[string]int{"missing": http.StatusNotFound, "forbidden": http.StatusForbidden} {
		s := &service{status: map[string]int{"/bucket": status}}
		found := bucket(t, s).Look(t.Context(), []string{"a", "b"})
		if err := found[0].Err; err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `bucket "bucket"`) {
			t.Errorf("%s: %v, want an error that names the bucket", name, err)
		}
	}
}

func TestDelete(t *testing.T) {
	const failed = `<Error><Key>p/%s</Key><Code>%s</Code><Message>said so</Message></Error>`
	s := &service{
		etags:  map[string]string{"/bucket/p/changed": `"2"`},
		status: map[string]int{"/bucket/p/unclear": http.StatusForbidden},
		answer: `<Deleted><Key>p/a</Key></Deleted><Deleted><Key>not/asked/for</Key></Deleted>` +
			fmt.Sprintf(failed, "gone", "NoSuchKey") + fmt.Sprintf(failed, "changed", "PreconditionFailed") +
			fmt.Sprintf(failed, "gone-too", "PreconditionFailed") + fmt.Sprintf(failed, "unclear", "PreconditionFailed") +
			fmt.Sprintf(failed, "denied", "AccessDenied") + fmt.Sprintf(failed, "broken", "InternalError"),
	}
	var files []deletefiles.File
	for _, path := range []string{"a", "gone", "changed", "gone-too", "unclear", "denied", "broken", "unsaid"} {
		files = append(files, deletefiles.File{Path: path, Version: `"1"`})
	}
	errs := bucket(t, s).Delete(t.Context(), files)
	for i, want := range []error{nil, nil, deletefiles.ErrChanged, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("%s: %v, want %v", files[i].Path, errs[i], want)
		}
	}
	if err := errs[4]; err == nil || errors.Is(err, deletefiles.ErrChanged) {
		t.Errorf("unclear: %v, want an outage", err)
	}
	if err := errs[5]; !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "said so") {
		t.Errorf("denied: %v", err)
	}
	if err := errs[6]; err == nil || err.Error() != "InternalError: said so" {
		t.Errorf("broken: %v", err)
	}
	if err := errs[7]; err == nil || !strings.Contains(err.Error(), "does not say") {
		t.Errorf("unsaid: %v", err)
	}
	if first := s.requests[0]; !strings.Contains(first, "<Key>p/unsaid</Key>") || !strings.Contains(first, "<ETag>&#34;1&#34;</ETag>") {
		t.Errorf("what was sent has no condition: %s", first)
	}
}

func TestDeleteWithoutAnAnswer(t *testing.T) {
	errs := bucket(t, &service{}).Delete(t.Context(), []deletefiles.File{{Path: "a", Version: `"1"`}, {Path: "b", Version: `"1"`}})
	if errs[0] == nil || errs[1] == nil {
		t.Errorf("%v", errs)
	}
}

// S3 refuses a request that names nothing.
func TestDeleteNothing(t *testing.T) {
	s := &service{}
	if errs := bucket(t, s).Delete(t.Context(), nil); len(errs) != 0 || len(s.requests) != 0 {
		t.Errorf("%v after %q", errs, s.requests)
	}
}
