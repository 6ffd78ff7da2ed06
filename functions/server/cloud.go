package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/thaw-mcp/thaw/functions/provision"
	"github.com/thaw-mcp/thaw/functions/provision/s3cloud"
)

// environmentsRoot is the setting that says where provision_environment keeps what it builds;
// without it the tool is not served. A real cloud is opened here, and functions.Deps has the
// scopes that its callers need.
const environmentsRoot = "ENVIRONMENTS_ROOT"

// openCloud opens what the setting names, nil if it is empty.
func openCloud(ctx context.Context, root string) (cloud provision.Cloud, err error) {
	scheme, rest, url := strings.Cut(root, "://")
	switch {
	case root == "":
		return nil, nil
	case url && scheme == "s3":
		var b bucket
		if b, err = openBucket(ctx, rest); err == nil {
			cloud = s3cloud.New(b.client, b.name, b.prefix, nil)
		}
	case url:
		err = fmt.Errorf("there is no scheme %q", scheme)
	default:
		cloud, err = openEnvironments(root)
	}
	if err != nil {
		return nil, fmt.Errorf("%s=%q: %w; allowed is %s", environmentsRoot, root, err, allowedEnvironments)
	}
	return cloud, nil
}
