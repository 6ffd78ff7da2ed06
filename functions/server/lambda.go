//go:build lambda.norpc

package main

import (
	"errors"

	"github.com/thaw-mcp/thaw/functions/deletefiles"
	"github.com/thaw-mcp/thaw/functions/provision"
	"github.com/thaw-mcp/thaw/runtime/serve"
)

// local is for a disk that stays, which Lambda has not.
var local serve.Kit

const allowedRoots = "s3://BUCKET[/PREFIX]"

func openFolder(string) (deletefiles.Files, error) {
	return nil, errNoFolders
}

const allowedEnvironments = "s3://BUCKET[/PREFIX]"

func openEnvironments(string) (provision.Cloud, error) {
	return nil, errNoFolders
}

var errNoFolders = errors.New("a build for Lambda has no folders")
