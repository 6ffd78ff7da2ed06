// Package awskit is what a main names to run on AWS: the Lambda host, tasks in DynamoDB and
// their messages through SQS or by invocation, and state keys in KMS.
package awskit

import (
	"github.com/thaw-mcp/thaw/dynamostore"
	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/runtime/lambdahost"
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/statecodec/awskms"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/lambdadispatch"
	"github.com/thaw-mcp/thaw/task/sqsdispatch"
)

// Kit is the AWS kit. Nothing in it opens before a setting, the place, or an event names it.
func Kit() serve.Kit {
	visibility := new(sqsdispatch.Visibility)
	return serve.Kit{
		Hosts:     []host.Host{lambdahost.HostOf(&lambdahost.Options{Visibility: visibility.Change})},
		Stores:    []task.StoreScheme{dynamostore.Scheme()},
		Dispatch:  []task.DispatchScheme{sqsdispatch.Scheme(), lambdadispatch.Scheme()},
		StateKeys: []statecodec.KeyScheme{awskms.Scheme()},
	}
}
