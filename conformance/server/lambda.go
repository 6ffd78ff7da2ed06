//go:build lambda.norpc

package main

import "github.com/thaw-mcp/thaw/runtime/serve"

// local is for a disk that stays, which Lambda has not.
var local serve.Kit
