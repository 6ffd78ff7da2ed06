package dynamostore

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/thaw-mcp/thaw/task"
)

// The attributes of a part beside e, its epoch.
const (
	attrData   = "b" // its first piece
	attrLength = "z" // of all pieces, in bytes
	attrRest   = "y" // what the sort keys of the other pieces begin with, if there are any
)

const (
	pieceSize = 350 << 10
	// partsOutlive is by how much parts outlive their head.
	partsOutlive = 24 * time.Hour
	// putsAtOnce bounds the requests of one write that are under way.
	putsAtOnce = 8
)

// putParts stores the parts of a write. Only an entry can meet another of its sort key, of
// which that of a lower epoch gives way.
func (s *Store) putParts(ctx context.Context, h *task.Head, write string, creates bool, parts []task.Part) error {
	places := map[string]int{} // in parts, by sort key
	for i := range parts {
		p, place := &parts[i], partSort(&parts[i], write, creates)
		if other, twice := places[place]; twice && (once(p.Kind) || p.Epoch < parts[other].Epoch) {
			continue
		}
		places[place] = i
	}
	var first, rest []item
	for place, i := range places {
		cut := cutUp(h, &parts[i], place, piecePrefix+write+"#"+strconv.Itoa(i)+"#")
		first, rest = append(first, cut[0]), append(rest, cut[1:]...)
	}
	// The first piece comes last, so that no reader finds one without the others.
	for _, items := range [][]item{rest, first} {
		if err := s.putAll(ctx, items); err != nil {
			return s.failed(ctx, "put part", err)
		}
	}
	return nil
}

// once reports whether the first of two parts stays.
func once(k task.Kind) bool { return k == task.PartCall || k == task.PartAnswer }

// cutUp is a part as items.
func cutUp(h *task.Head, p *task.Part, place, rest string) []item {
	pieces := max(1, (len(p.Data)+pieceSize-1)/pieceSize)
	items := make([]item, pieces)
	for n := range items {
		data := p.Data[n*pieceSize : min((n+1)*pieceSize, len(p.Data))]
		sorted := rest + ten(uint32(n))
		if n == 0 {
			sorted = place
		}
		items[n] = key(taskPrefix+h.ID, sorted)
		items[n][attrData] = binary(data)
		if !h.Expires.IsZero() {
			items[n][attrTTL] = inSeconds(h.Expires.Add(partsOutlive))
		}
	}
	items[0][attrEpoch], items[0][attrLength] = number(p.Epoch), number(len(p.Data))
	if pieces > 1 {
		items[0][attrRest] = text(rest)
	}
	return items
}

func (s *Store) putAll(ctx context.Context, items []item) error {
	if len(items) == 1 {
		return s.put(ctx, items[0])
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	turns := make(chan struct{}, putsAtOnce)
	for _, i := range items {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := s.put(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// put stores an item of a part. If an entry meets one of a higher epoch, its claim is lost, which
// the swap of the head will tell.
func (s *Store) put(ctx context.Context, i item) error {
	in := &dynamodb.PutItemInput{TableName: &s.table, Item: i}
	if strings.HasPrefix(sortOf(i), entryPrefix) {
		in.ConditionExpression = aws.String("attribute_not_exists(s) OR e <= :e")
		in.ExpressionAttributeValues = item{":e": i[attrEpoch]}
	}
	_, err := s.send(ctx, func(ctx context.Context) error {
		_, err := s.client.PutItem(ctx, in)
		return err
	})
	if _, higher := unmet(err); higher {
		return nil
	}
	return err
}
