//go:build !lambda.norpc

package main

import (
	"errors"
	"io/fs"
	"os"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/deletefiles/dirfiles"
	"github.com/thaw-mcp/thaw/functions/provision"
	"github.com/thaw-mcp/thaw/functions/provision/dircloud"
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

const allowedEnvironments = "a folder, which is made when it is needed, or s3://BUCKET[/PREFIX]"

func openEnvironments(path string) (provision.Cloud, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return nil, errors.New("it is no folder")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return dircloud.New(path, nil), nil
}
