// Package localkit is what a laptop has in place of a cloud: a store in a SQLite file and
// state keys in a file of their own.
package localkit

import (
	"github.com/thaw-mcp/thaw/runtime/serve"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/statecodec/filekey"
	"github.com/thaw-mcp/thaw/task"
	"github.com/thaw-mcp/thaw/task/memstore"
	"github.com/thaw-mcp/thaw/task/sqlitestore"
)

// Kit opens the schemes sqlite, memory and file. Where nobody has set THAW_STORE and
// THAW_STATE_KEY, and the host has a disk of its own, they are in the folder .thaw of the
// working directory. It adds some 4 MB to a binary, so a build for a cloud leaves it out.
func Kit() serve.Kit {
	return serve.Kit{
		Stores:    []task.StoreScheme{sqlitestore.Scheme(), memstore.Scheme()},
		StateKeys: []statecodec.KeyScheme{filekey.Scheme()},
		Defaults: map[string]string{
			"THAW_STORE":     "sqlite:.thaw/tasks.db",
			"THAW_STATE_KEY": "file:.thaw/state.key",
		},
	}
}
