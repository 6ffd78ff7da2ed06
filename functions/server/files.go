package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/s3files"
	"github.com/thaw-mcp/thaw/internal/awsconfig"
)

// filesRoot is the setting that says where delete_files deletes; without it the tool is not
// served.
const filesRoot = "FILES_ROOT"

// openFiles opens what the setting names, nil if it is empty.
func openFiles(ctx context.Context, root string) (files deletefiles.Files, err error) {
	scheme, rest, url := strings.Cut(root, "://")
	switch {
	case root == "":
		return nil, nil
	case url && scheme == "s3":
		files, err = openBucket(ctx, rest)
	case url:
		err = fmt.Errorf("there is no scheme %q", scheme)
	default:
		files, err = openFolder(root)
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w; allowed is %s", filesRoot, root, err, allowedRoots)
	}
	return files, nil
}

// bucketName is what S3 lets a bucket be called.
const bucketName = `^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`

// openBucket opens BUCKET or BUCKET/PREFIX. Nothing goes over the network yet.
func openBucket(ctx context.Context, path string) (deletefiles.Files, error) {
	name, prefix, _ := strings.Cut(path, "/")
	prefix = strings.TrimSuffix(prefix, "/")
	switch {
	case !regexp.MustCompile(bucketName).MatchString(name):
		return nil, fmt.Errorf("%q is no name of a bucket", name)
	case prefix == "." || prefix != "" && !fs.ValidPath(prefix):
		return nil, fmt.Errorf("the prefix %q is no clean path", prefix)
	case prefix != "":
		prefix += "/"
	}
	cfg, err := awsconfig.Load(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("AWS_REGION is not set")
	}
	return s3files.New(s3.NewFromConfig(cfg), name, prefix), nil
}
