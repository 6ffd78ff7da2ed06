package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/thaw-mcp/thaw/internal/awsconfig"
)

// bucket is a place in S3 that a setting names.
type bucket struct {
	client       *s3.Client
	name, prefix string
}

// isBucketName says whether S3 lets a bucket be called so. A regular expression with these
// bounds is compiled at every cold start.
func isBucketName(name string) bool {
	const inside, ends = "abcdefghijklmnopqrstuvwxyz0123456789.-", ".-"
	return 3 <= len(name) && len(name) <= 63 && strings.Trim(name, inside) == "" && strings.Trim(name, ends) == name
}

// openBucket opens BUCKET or BUCKET/PREFIX. Nothing goes over the network yet.
func openBucket(ctx context.Context, path string) (bucket, error) {
	name, prefix, _ := strings.Cut(path, "/")
	prefix = strings.TrimSuffix(prefix, "/")
	switch {
	case !isBucketName(name):
		return bucket{}, fmt.Errorf("%q is no name of a bucket", name)
	case prefix == "." || prefix != "" && !fs.ValidPath(prefix):
		return bucket{}, fmt.Errorf("the prefix %q is no clean path", prefix)
	case prefix != "":
		prefix += "/"
	}
	cfg, err := awsconfig.Load(ctx)
	if err != nil {
		return bucket{}, err
	}
	if cfg.Region == "" {
		return bucket{}, errors.New("AWS_REGION is not set")
	}
	return bucket{s3.NewFromConfig(cfg), name, prefix}, nil
}
