package dynamostore

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/thaw-mcp/thaw/task"
)

const (
	taskPrefix = "T#"
	usePrefix  = "U#"
	useSort    = "U"

	// The first characters of the sort keys of a task, in the order that the package's
	// comment explains.
	begunPrefix    = "B#"
	callPrefix     = "C#"
	headSort       = "H"
	answerPrefix   = "I#"
	entryPrefix    = "J#"
	outcomePrefix  = "O#"
	questionPrefix = "Q#"
	piecePrefix    = "X#"
)

// after is behind every sort key that begins with prefix, which ends in #, and before any
// that is behind these.
func after(prefix string) string { return prefix[:len(prefix)-1] + "$" }

func headKey(id string) item { return key(taskPrefix+id, headSort) }

func ten(n uint32) string { return fmt.Sprintf("%010d", n) }

// newWrite names one Create or Commit, in letters, digits, - and _.
func newWrite() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// partSort is the sort key of a part that write puts, with a new head or not.
func partSort(p *task.Part, write string, creates bool) string {
	switch {
	case p.Kind == task.PartCall:
		return callPrefix + write
	case p.Kind == task.PartEntry && creates:
		return begunPrefix + write + "#" + ten(p.Seq)
	case p.Kind == task.PartEntry:
		return entryPrefix + ten(p.Seq)
	case p.Kind == task.PartQuestion:
		return questionPrefix + ten(p.Epoch) + "#" + p.Name
	case p.Kind == task.PartAnswer:
		return answerPrefix + p.Name + "#" + write
	}
	return outcomePrefix + ten(p.Epoch)
}

// answerOf takes the sort key of an answer apart. A name may have a # in it, a write has not.
func answerOf(s string) (name, write string) {
	s = strings.TrimPrefix(s, answerPrefix)
	end := strings.LastIndexByte(s, '#')
	return s[:max(end, 0)], s[end+1:]
}

// entryOf takes the sort key of an entry apart; only one with which a task began has a write.
func entryOf(s string) (write string, seq uint32, err error) {
	place := strings.Split(s, "#")
	if len(place) == 3 {
		write = place[1]
	}
	n, err := strconv.ParseUint(place[len(place)-1], 10, 32)
	if err != nil {
		return "", 0, fmt.Errorf("dynamostore: %w: an entry has no number", task.ErrCorrupt)
	}
	return write, uint32(n), nil
}

// shardOf is the shard of a task in the index.
func shardOf(id string) types.AttributeValue { return shard(task.Shard(id)) }

func shard(n int) types.AttributeValue { return text(fmt.Sprintf("%s#%02d", indexName, n)) }
