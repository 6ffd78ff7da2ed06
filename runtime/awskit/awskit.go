// Package awskit is what a main names to run on AWS: the Lambda host, and state keys in KMS.
package awskit

import (
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/lambdahost"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/statecodec/awskms"
)

// Kit is the AWS kit. Nothing in it opens before a setting or the place names it.
func Kit() serve.Kit {
	return serve.Kit{
		Hosts:     []host.Host{lambdahost.Host()},
		StateKeys: []statecodec.KeyScheme{awskms.Scheme()},
	}
}
