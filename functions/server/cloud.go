package main

import (
	"fmt"
	"strings"

	"github.com/thaw-mcp/thaw/functions/provision"
)

// environmentsRoot is the setting that says where provision_environment keeps what it builds;
// without it the tool is not served. A real cloud is opened here, and functions.Deps has the
// scopes that its callers need.
const environmentsRoot = "ENVIRONMENTS_ROOT"

// openCloud opens what the setting names, nil if it is empty.
func openCloud(root string) (cloud provision.Cloud, err error) {
	scheme, _, url := strings.Cut(root, "://")
	switch {
	case root == "":
		return nil, nil
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
