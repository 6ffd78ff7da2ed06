// Package s3files has files in an S3 bucket for delete_files.
package s3files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
)

// Bucket is what lies below a prefix of a bucket. The prefix and a path, joined as they
// stand, are a key. A path says whatever a key says but for doubled, leading and trailing
// slashes and the names "." and "..", so objects whose keys have those cannot be reached.
//
// A version is an ETag, and S3 itself deletes only what still has it. In a versioned bucket
// a deleted object can be brought back; the role of the server needs no right to delete
// versions. It needs s3:GetObject and s3:DeleteObject on the objects, and s3:ListBucket on
// the bucket, without which S3 does not tell what does not exist from what is forbidden.
type Bucket struct {
	client       client
	name, prefix string
}

var _ deletefiles.Files = (*Bucket)(nil)

// client is what a Bucket calls of *s3.Client.
type client interface {
	HeadBucket(context.Context, *s3.HeadBucketInput, ...func(*s3.Options)) (*s3.HeadBucketOutput, error)
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
}

// New makes a Bucket of a client, mostly an *s3.Client, the bucket's name and a prefix: ""
// for the whole bucket, otherwise mostly with a slash at its end. It calls nothing.
func New(client client, name, prefix string) *Bucket { return &Bucket{client, name, prefix} }

const (
	// maxKey is the longest key that S3 takes, in bytes.
	maxKey = 1024
	// looks is how many objects are looked at side by side.
	looks = 16
)

// Look implements deletefiles.Files.
func (b *Bucket) Look(ctx context.Context, paths []string) []deletefiles.Found {
	found := make([]deletefiles.Found, len(paths))
	var group sync.WaitGroup
	free := make(chan struct{}, looks)
	for i, path := range paths {
		free <- struct{}{}
		group.Go(func() {
			found[i].Version, found[i].Err = b.look(ctx, path)
			<-free
		})
	}
	group.Wait()
	for i := range found {
		if !errors.Is(found[i].Err, fs.ErrNotExist) {
			continue
		}
		// To S3 an object of a bucket that does not exist is one that does not exist.
		if _, err := b.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.name}); err != nil {
			found[i].Err = fmt.Errorf("bucket %q: %w", b.name, err)
		}
		break
	}
	return found
}

// look returns the version of the object of path.
func (b *Bucket) look(ctx context.Context, path string) (string, error) {
	key := b.prefix + path
	if len(key) > maxKey {
		return "", fs.ErrNotExist
	}
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
	switch {
	case err == nil && aws.ToString(out.ETag) == "":
		return "", errors.New("S3 gives no ETag")
	case err == nil:
		return *out.ETag, nil
	case status(err) == http.StatusNotFound:
		return "", fs.ErrNotExist
	}
	return "", err
}

// Delete implements deletefiles.Files.
func (b *Bucket) Delete(ctx context.Context, files []deletefiles.File) []error {
	errs := make([]error, len(files))
	if len(files) == 0 {
		return errs // S3 refuses a request that names nothing
	}
	objects := make([]types.ObjectIdentifier, len(files))
	at := make(map[string]int, len(files))
	for i, file := range files {
		key := b.prefix + file.Path
		objects[i] = types.ObjectIdentifier{Key: &key, ETag: &file.Version}
		at[key], errs[i] = i, errors.New("S3 does not say what became of it")
	}
	out, err := b.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b.name, Delete: &types.Delete{Objects: objects}})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	for _, deleted := range out.Deleted {
		if i, ok := at[aws.ToString(deleted.Key)]; ok {
			errs[i] = nil
		}
	}
	for _, failed := range out.Errors {
		if i, ok := at[aws.ToString(failed.Key)]; ok {
			errs[i] = b.failure(ctx, files[i], &failed)
		}
	}
	return errs
}

// failure is what S3 says of one object.
func (b *Bucket) failure(ctx context.Context, file deletefiles.File, e *types.Error) error {
	switch code := aws.ToString(e.Code); code {
	case "NoSuchKey":
		return nil
	case "AccessDenied":
		return fmt.Errorf("%w: %s", fs.ErrPermission, aws.ToString(e.Message))
	case "PreconditionFailed":
		// An object that is gone does not have its version either.
		switch _, err := b.look(ctx, file.Path); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		return deletefiles.ErrChanged
	default:
		return fmt.Errorf("%s: %s", code, aws.ToString(e.Message))
	}
}

// status is the HTTP status of S3's answer, 0 if there was none.
func status(err error) int {
	var response *awshttp.ResponseError
	if !errors.As(err, &response) {
		return 0
	}
	return response.HTTPStatusCode()
}
