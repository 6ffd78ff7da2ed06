package provision

import "context"

// Cloud is where provision_environment builds. Implementations lie below this folder. They
// are safe for concurrent use, and they outlive the process: what one instance began another
// goes on with.
//
// A token is the same on every try of one step of one call and differs from every other. A
// second call with it, after an answer that was lost or while the first is still at work,
// makes nothing new and returns what the first made.
type Cloud interface {
	// CreateNetwork makes an empty network in a region and returns its id.
	CreateNetwork(ctx context.Context, region, token string) (network string, err error)
	// StartMachines starts n machines of a size in a network and returns their ids, without
	// waiting until they are healthy.
	StartMachines(ctx context.Context, network, size string, n int, token string) (machines []string, err error)
	// Healthy reports whether all of a network's machines named work now. An error says that
	// they never will.
	Healthy(ctx context.Context, network string, machines []string) (bool, error)
	// Destroy removes a network and all that is in it. Nil says that it is gone, whoever
	// removed it.
	Destroy(ctx context.Context, network string) error
}
