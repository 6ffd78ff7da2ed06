// Package doors is the contract of the Lambda host: the fixture server's binary, as it would be
// deployed, in simulated sandboxes behind each of the four front doors, with and without streams.
// It has tests only.
package doors
