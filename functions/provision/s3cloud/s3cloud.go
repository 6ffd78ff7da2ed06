// Package s3cloud keeps the environments of provision_environment as objects in an S3 bucket.
// It is for trying the tool where no disk stays: what it keeps is a record, and no machine
// runs.
//
// A network is the object NETWORK/network.json, a machine one such as NETWORK/machine-1.json.
// A machine works from Boot after it was put on, by S3's clock, unless there is an object of
// its name that ends in .down instead of .json: make one by hand to see the tool wait.
package s3cloud

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/thaw-mcp/thaw/functions/provision"
)

// Boot is how long a machine takes until it works.
const Boot = 3 * time.Second

// Cloud is what lies below a prefix of a bucket. Any number of processes may share it. The
// role of the server needs s3:PutObject and s3:DeleteObject on the objects, and s3:ListBucket
// on the bucket.
type Cloud struct {
	client       client
	name, prefix string
	now          func() time.Time
}

var _ provision.Cloud = (*Cloud)(nil)

// client is what a Cloud calls of *s3.Client.
type client interface {
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
}

// New makes a Cloud of a client, mostly an *s3.Client, the bucket's name and a prefix: "" for
// the whole bucket, otherwise mostly with a slash at its end. It calls nothing. now is the
// clock; nil is time.Now.
func New(client client, name, prefix string, now func() time.Time) *Cloud {
	if now == nil {
		now = time.Now
	}
	return &Cloud{client, name, prefix, now}
}

const networkObject = "network.json"

// CreateNetwork implements provision.Cloud.
func (c *Cloud) CreateNetwork(ctx context.Context, region, token string) (string, error) {
	digest := sha256.Sum256([]byte(token))
	network := fmt.Sprintf("net-%x", digest[:8])
	return network, c.putOnce(ctx, network, networkObject, map[string]string{"region": region})
}

// StartMachines implements provision.Cloud. A network has one set of machines, so token
// is not needed to find it again.
func (c *Cloud) StartMachines(ctx context.Context, network, size string, n int, _ string) ([]string, error) {
	there, err := c.list(ctx, network)
	if err != nil {
		return nil, err
	}
	if _, ok := there[networkObject]; !ok {
		return nil, missing(network, networkObject)
	}
	machines := make([]string, n)
	for i := range machines {
		machines[i] = fmt.Sprintf("machine-%d", i+1)
		if _, ok := there[machines[i]+".json"]; ok {
			continue
		}
		if err := c.putOnce(ctx, network, machines[i]+".json", map[string]string{"size": size}); err != nil {
			return nil, err
		}
	}
	return machines, nil
}

// Healthy implements provision.Cloud. A machine without its object was stopped by somebody,
// which is an error.
func (c *Cloud) Healthy(ctx context.Context, network string, machines []string) (bool, error) {
	there, err := c.list(ctx, network)
	if err != nil {
		return false, err
	}
	healthy := true
	for _, machine := range machines {
		started, ok := there[machine+".json"]
		if !ok {
			return false, missing(network, machine+".json")
		}
		_, down := there[machine+".down"]
		healthy = healthy && !down && c.now().Sub(started) >= Boot
	}
	return healthy, nil
}

// Destroy implements provision.Cloud.
func (c *Cloud) Destroy(ctx context.Context, network string) error {
	there, err := c.list(ctx, network)
	if err != nil || len(there) == 0 {
		return err
	}
	var objects []types.ObjectIdentifier
	for name := range there {
		objects = append(objects, types.ObjectIdentifier{Key: c.key(network, name)})
	}
	out, err := c.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &c.name, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)}})
	if err != nil {
		return err
	}
	var problems []error
	for _, e := range out.Errors {
		problems = append(problems, fmt.Errorf("%s: %s: %s", aws.ToString(e.Key), aws.ToString(e.Code), aws.ToString(e.Message)))
	}
	return errors.Join(problems...)
}

// maxObjects is what a network may have, and S3 lists and deletes at a time.
const maxObjects = 1000

// list returns when each object of a network was put, by its name.
func (c *Cloud) list(ctx context.Context, network string) (map[string]time.Time, error) {
	if !networkID.MatchString(network) {
		return nil, fmt.Errorf("%q is no id of a network", network)
	}
	prefix := c.key(network, "")
	out, err := c.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &c.name, Prefix: prefix})
	if err != nil {
		return nil, err
	}
	if aws.ToBool(out.IsTruncated) {
		return nil, fmt.Errorf("%s has more than %d objects", network, maxObjects)
	}
	there := map[string]time.Time{}
	for _, object := range out.Contents {
		there[strings.TrimPrefix(aws.ToString(object.Key), *prefix)] = aws.ToTime(object.LastModified)
	}
	return there, nil
}

var networkID = regexp.MustCompile(`^net-[0-9a-f]{16}$`)

func (c *Cloud) key(network, name string) *string {
	return aws.String(c.prefix + network + "/" + name)
}

func missing(network, name string) error {
	return fmt.Errorf("%s of %s: %w", name, network, fs.ErrNotExist)
}

// putTries is for an object that somebody else puts or deletes at this moment.
const putTries = 5

// putOnce makes an object; one that is there stays as it is.
func (c *Cloud) putOnce(ctx context.Context, network, name string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	for range putTries {
		_, err = c.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &c.name, Key: c.key(network, name), Body: strings.NewReader(string(text)),
			ContentType: aws.String("application/json"), IfNoneMatch: aws.String("*"),
		})
		var answer *awshttp.ResponseError
		switch {
		case !errors.As(err, &answer):
			return err
		case answer.HTTPStatusCode() == http.StatusPreconditionFailed:
			return nil // it is there
		case answer.HTTPStatusCode() != http.StatusConflict:
			return err
		}
	}
	return err
}
