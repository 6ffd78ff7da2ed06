package task

import (
	"context"
	"fmt"
)

// Lister lists tasks for an operator. A Store is one if that costs it no index of its own.
type Lister interface {
	// Recent returns the heads of the tasks that were created last, the latest first, at most
	// limit, which is 1 or more. One that has expired may be left out.
	Recent(ctx context.Context, limit int) ([]Head, error)
}

// CheckRecent says what is wrong with a question for recent tasks. Recent begins with it.
func CheckRecent(limit int) error {
	if limit < 1 {
		return fmt.Errorf("task: the limit is %d; allowed is 1 or more", limit)
	}
	return nil
}
