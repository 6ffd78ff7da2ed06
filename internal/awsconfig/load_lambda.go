//go:build lambda.norpc

package awsconfig

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func load(context.Context) (aws.Config, error) { return fromEnvironment() }
