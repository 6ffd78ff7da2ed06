//go:build !lambda.norpc

package main

import (
	"errors"
	"io/fs"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/dirfiles"
	"github.com/thaw-mcp/thaw/runtime/localkit"
)

// local is for a disk that stays: a laptop's, or a volume that all instances mount.
var local = localkit.Kit()

const allowedRoots = "a folder that exists, or s3://BUCKET[/PREFIX]"

func openFolder(path string) (deletefiles.Files, error) {
	dir, err := dirfiles.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no such folder")
	}
	if err != nil {
		return nil, err
	}
	return dir, nil
}
