package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/s3files"
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
		var b bucket
		if b, err = openBucket(ctx, rest); err == nil {
			files = s3files.New(b.client, b.name, b.prefix)
		}
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
