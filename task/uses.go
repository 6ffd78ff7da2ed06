package task

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Use is one claim on a round of a call: a state that was sealed in that round may be
// redeemed once.
type Use struct {
	// Call is the id of the call, opaque: 1 to 256 printable ASCII characters, no space.
	Call string
	// Round is 1 or more and only grows.
	Round int
	// Write is random and fresh for each claim. A claim that is tried again keeps it, so
	// that its own write, applied while the answer was lost, is not taken for a replay.
	Write [16]byte
	// Answers is the digest of the answers that the retry brought.
	Answers [32]byte
	// Deadline is when the run that claims is over at the latest.
	Deadline time.Time
	// Expires is when the record may go.
	Expires time.Time
}

// Used is the record that a claim found in its way.
type Used struct {
	// Round is that of the claim or a later one.
	Round int
	// Answers and Deadline are those of the claim that was first.
	Answers  [32]byte
	Deadline time.Time
	// Done says that the run was finished. Response is what Finish got, nil if none was kept.
	Done     bool
	Response []byte
}

// MaxResponse is the longest response that is kept, in bytes: 350 KB. An item of DynamoDB
// ends at 400 KB.
const MaxResponse = 350 << 10

// ErrNotClaimed is the error of Finish and Release for a round that is not the claimant's, or no
// longer: another claim was first, a later round was claimed, or the record is gone.
var ErrNotClaimed = errors.New("task: the round is not claimed by this write")

// Uses records which rounds of which calls were used. A call has one record, of its
// latest round.
//
// Per call, Claim and Finish are linearizable, across processes too if the store is
// shared by them, and nil means durable. Safe for concurrent use.
//
// A record counts until it is removed: never before Use.Expires, and after it when the
// store comes to it. Times are kept to the millisecond, rounded down, and come back
// in UTC. Slices are copied: neither side sees what the other does to its own.
//
// Nothing was written if the error is ErrNotClaimed, that of Use.Check, or that of a
// context that had ended before. Any other error means that the write may or may not
// have been applied; repeat it with the same Use.
type Uses interface {
	// Claim stores u as the record of its call, unless there is one of this or a later
	// round. first tells whether it did; if not, prev is what is stored. The same Write
	// again is first again and leaves the record as it is, until the round is finished;
	// then it finds the response like any other claim.
	Claim(ctx context.Context, u Use) (first bool, prev Used, err error)

	// Finish records the response of the round that u claimed. Call, Round and Write have
	// to be those of the record, or the error is ErrNotClaimed and the record stays. The
	// first response stays as well: finishing again is no error and changes nothing. What
	// KeptResponse drops leaves the record done without a response.
	Finish(ctx context.Context, u Use, response []byte) error

	// Release gives back the round that u claimed and that had no effect: a claim of the same
	// round with the same Answers is then first again, and any other finds it done, without a
	// response. Call, Round and Write have to be those of the record and the round not finished, or
	// the error is ErrNotClaimed and the record stays.
	Release(ctx context.Context, u Use) error
}

// KeptResponse is what a store keeps of a response: the whole of it, or nil if it is empty
// or longer than MaxResponse. Every Finish goes through it.
func KeptResponse(response []byte) []byte {
	if len(response) == 0 || len(response) > MaxResponse {
		return nil
	}
	return response
}

// maxCall is far below the 2,048 bytes that a key of DynamoDB may have.
const maxCall = 256

// Check says what is wrong with u. Every method of Uses begins with it. The error names
// the field and what is allowed; ids and digests are not shown.
func (u Use) Check() error {
	switch {
	case len(u.Call) == 0 || len(u.Call) > maxCall:
		return fmt.Errorf("task: Use.Call has %d characters; allowed are 1 to %d", len(u.Call), maxCall)
	case u.Round < 1:
		return fmt.Errorf("task: Use.Round is %d; rounds begin at 1", u.Round)
	case u.Write == [16]byte{}:
		return errors.New("task: Use.Write is zero; it has to be random, fresh for each claim")
	case u.Deadline.IsZero():
		return errors.New("task: Use.Deadline is not set")
	case u.Expires.IsZero():
		return errors.New("task: Use.Expires is not set")
	}
	for i := range len(u.Call) {
		if c := u.Call[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("task: Use.Call has byte 0x%02x at %d; allowed is printable ASCII without spaces", c, i)
		}
	}
	return nil
}
