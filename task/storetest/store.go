package storetest

import (
	"testing"

	"github.com/thaw-mcp/thaw/task"
)

// Cutter is a Store of tests that can lose what it has stored.
type Cutter interface {
	// Cut takes a piece away from the part of id that has p's Kind, Name, Epoch and Seq, or
	// the whole part if it was stored in one piece.
	Cut(tb testing.TB, id string, p task.Part)
}

// Extender is a Store of tests that can keep a value beside the fields of a head, where a
// newer version of thaw would have a field more.
type Extender interface {
	Extend(tb testing.TB, id, value string)
	Extension(tb testing.TB, id string) string
}

type storeCase struct {
	name string
	run  func(*testing.T, func() task.Store)
}

// Store holds a backend to task.Store: to task.Sweeper and task.Lister too if its stores are, to
// ErrCorrupt if they are Cutters, and to keeping what it does not know if they are Extenders.
// Each subtest has a place of its own. The methods of task.Uses are held by Uses.
func Store(t *testing.T, backend Backend) {
	cases := []storeCase{
		{"a created task is there", created},
		{"creating it again is success", createdAgain},
		{"creating another of that id is ErrExists", createdByAnother},
		{"every head comes back as it was", values},
		{"every time comes back to the millisecond", headTimes},
		{"a commit replaces the whole head", replaced},
		{"a commit needs the version before it", versions},
		{"the same commit again is success", committedAgain},
		{"a commit never creates a head", neverCreates},
		{"an expired head takes no commit", expiredHead},
		{"an expired head is there or not", expiredIsThereOrNot},
		{"a head without expiry never expires", neverExpires},
		{"expiry moves with the head", expiryMoves},
		{"tasks do not touch each other", otherTasks},
		{"ids are checked", ids},
		{"what is wrong writes nothing", wrongWrites},
		{"heads and parts are copied", recordsAreCopied},
		{"an ended context reads and writes nothing", endedContextOfTasks},
		{"two stores on one place see each other's tasks", twoStoresOfTasks},

		{"parts of any size come back exactly", sizes},
		{"a call is put once", callOnce},
		{"entries come in order and in ranges", ranges},
		{"a thousand entries come back", thousand},
		{"an entry gives way to an equal or higher epoch", entryEpochs},
		{"an entry of another size replaces the whole entry", entrySizes},
		{"questions and outcomes go by epoch", epochs},
		{"the first answer stays", firstAnswer},
		{"names are exact and in order", names},
		{"parts of a lost swap stay unseen", lostSwap},
		{"what was never put is not there", neverPut},

		{"of many creates one is there", createsAtOnce},
		{"of many tries of one create all succeed", sameCreateAtOnce},
		{"of many commits on a version one wins", commitsAtOnce},
		{"of many tries of one commit all succeed", sameCommitAtOnce},
		{"of many answers one stays", answersAtOnce},
		{"no reader sees a version go back or a head before its parts", readersAtOnce},
	}
	s := backend(t)()
	if _, ok := s.(Cutter); ok {
		cases = append(cases, storeCase{"a part that lost a piece is ErrCorrupt", cut})
	}
	if _, ok := s.(Extender); ok {
		cases = append(cases, storeCase{"what a newer version keeps beside a head survives", extended})
	}
	if _, ok := s.(task.Sweeper); ok {
		cases = append(cases,
			storeCase{"due tasks come by shard, the earliest first", dueInOrder},
			storeCase{"what does not wake is not due", notDue},
			storeCase{"a task is due as its head says", dueMoves},
			storeCase{"shard and limit are checked", dueChecked})
	}
	if _, ok := s.(task.Lister); ok {
		cases = append(cases, storeCase{"recent tasks come with their heads, the latest first", listed})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, backend(t)) })
	}
}
