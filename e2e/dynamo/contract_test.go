package dynamo

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw/task/storetest"
)

func TestUses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg aws.Config) { storetest.Uses(t, backend(cfg)) })
}

func TestStore(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cfg aws.Config) { storetest.Store(t, backend(cfg)) })
}
