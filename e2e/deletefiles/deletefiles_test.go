// Package deletefiles tests the tool delete_files where its files are in S3: against an
// emulator of it, and as a whole, from a foreign client through the program that serves it.
package deletefiles_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/thaw-mcp/thaw/e2e/internal/cloud"
	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
	"github.com/thaw-mcp/thaw/e2e/internal/ministack"
	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/filestest"
	"github.com/thaw-mcp/thaw/functions/deletefiles/s3files"
)

// bucket is a bucket of a test's own.
type bucket struct {
	client *s3.Client
	name   string
}

func newBucket(t *testing.T, s *cloud.Server, name string, versioned bool) *bucket {
	t.Helper()
	b := &bucket{s3.NewFromConfig(s.Config()), name}
	if _, err := b.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &b.name, CreateBucketConfiguration: &types.CreateBucketConfiguration{
		LocationConstraint: types.BucketLocationConstraint(s.Config().Region)}}); err != nil {
		t.Fatal(err)
	}
	if versioned {
		if _, err := b.client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: &b.name,
			VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bucket) put(t *testing.T, key, content string) {
	t.Helper()
	if _, err := b.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: strings.NewReader(content)}); err != nil {
		t.Fatal(err)
	}
}

// keys are those of the objects that are there.
func (b *bucket) keys(t *testing.T) []string {
	t.Helper()
	out, err := b.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &b.name})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, object := range out.Contents {
		keys = append(keys, *object.Key)
	}
	return keys
}

// contents are how many versions of objects with content are kept.
func (b *bucket) contents(t *testing.T) int {
	t.Helper()
	out, err := b.client.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &b.name})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Versions)
}

func TestContract(t *testing.T) {
	server := ministack.Start(t)
	for _, versioned := range []bool{false, true} {
		t.Run(fmt.Sprintf("versioned=%t", versioned), func(t *testing.T) {
			b := newBucket(t, server, fmt.Sprintf("contract-%t", versioned), versioned)
			places := 0
			filestest.Run(t, func(t *testing.T) filestest.Place {
				places++
				prefix := fmt.Sprintf("place %d/", places)
				return filestest.Place{
					Files: s3files.New(b.client, b.name, prefix),
					Put:   func(t *testing.T, path, content string) { b.put(t, prefix+path, content) },
					Has:   func(t *testing.T, path string) bool { return slices.Contains(b.keys(t), prefix+path) },
				}
			})
		})
	}
}

// What is deleted in a versioned bucket is hidden by a marker and can be brought back.
func TestVersionsAreKept(t *testing.T) {
	b := newBucket(t, ministack.Start(t), "versioned", true)
	b.put(t, "a", "first")
	b.put(t, "a", "second")
	files := s3files.New(b.client, b.name, "")
	found := files.Look(t.Context(), []string{"a"})
	if found[0].Err != nil {
		t.Fatal(found[0].Err)
	}
	if err := files.Delete(t.Context(), []deletefiles.File{{Path: "a", Version: found[0].Version}})[0]; err != nil {
		t.Fatal(err)
	}
	if keys, n := b.keys(t), b.contents(t); len(keys) != 0 || n != 2 {
		t.Errorf("there are %q and %d versions, want none and 2", keys, n)
	}
}

func TestBucketThatDoesNotExist(t *testing.T) {
	client := s3.NewFromConfig(ministack.Start(t).Config())
	if err := s3files.New(client, "missing", "").Look(t.Context(), []string{"a"})[0].Err; err == nil || !strings.Contains(err.Error(), `"missing"`) {
		t.Errorf("%v, want an error that names the bucket", err)
	}
}

// patience bounds one client's visit.
const patience = 60 * time.Second

// visit calls delete_files with the official Go client, whose user does what action says,
// and returns what was asked and the result.
func visit(t *testing.T, endpoint, action string, files ...string) (asked []string, out deletefiles.Out) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = append(asked, r.Params.Message)
			return &mcp.ElicitResult{Action: action}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint, MaxRetries: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "delete_files", Arguments: map[string]any{"files": files}})
	if err := errors.Join(err, session.Close()); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil || result.IsError {
		t.Fatalf("%+v: %v", result, err)
	}
	return asked, out
}

func TestConversation(t *testing.T) {
	s := ministack.Start(t)
	b := newBucket(t, s, "documents", false)
	for _, key := range []string{"shared/a.txt", "shared/c/d.txt", "shared/other.txt", "a.txt"} {
		b.put(t, key, key)
	}
	binary := fixture.BuildProgram(t, "github.com/thaw-mcp/thaw/functions/server")
	endpoint := fixture.ServeIn(t, t.TempDir(), binary, append(s.Env(), "FILES_ROOT=s3://documents/shared")...)
	const question = "Delete 2 files?\n\"a.txt\"\n\"c/d.txt\""
	tests := []struct {
		action, out string
		left        []string
	}{
		{"decline", "{Deleted:[] Missing:[missing.txt] Kept:[] Declined:true}", []string{"a.txt", "shared/a.txt", "shared/c/d.txt", "shared/other.txt"}},
		{"accept", "{Deleted:[a.txt c/d.txt] Missing:[missing.txt] Kept:[] Declined:false}", []string{"a.txt", "shared/other.txt"}},
	}
	for _, tt := range tests {
		asked, out := visit(t, endpoint, tt.action, "a.txt", "c/d.txt", "missing.txt")
		if len(asked) != 1 || asked[0] != question {
			t.Errorf("%s: asked %q, want %q", tt.action, asked, question)
		}
		if got := fmt.Sprintf("%+v", out); got != tt.out {
			t.Errorf("%s: %s, want %s", tt.action, got, tt.out)
		}
		if left := b.keys(t); !slices.Equal(left, tt.left) {
			t.Errorf("%s: left is %q, want %q", tt.action, left, tt.left)
		}
	}
}
