package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/task"
)

// Head implements task.Store.
func (s *Store) Head(ctx context.Context, id string) (task.Head, error) {
	if err := task.CheckID(id); err != nil {
		return task.Head{}, err
	}
	if err := ctx.Err(); err != nil {
		return task.Head{}, fmt.Errorf("dynamostore: read head: %w", err)
	}
	i, err := s.get(ctx, headKey(id))
	if err != nil {
		return task.Head{}, s.failed(ctx, "read head", err)
	}
	if i == nil {
		return task.Head{}, task.ErrNotFound
	}
	return decodeHead(i)
}

// Parts implements task.Store.
func (s *Store) Parts(ctx context.Context, id string, k task.Kind, name string, from, to uint32) ([]task.Part, error) {
	if err := task.CheckParts(id, k); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("dynamostore: read parts: %w", err)
	}
	var found []stored
	var err error
	switch {
	case k == task.PartCall:
		found, err = s.call(ctx, id)
	case k == task.PartEntry:
		found, err = s.entries(ctx, id, from, to)
	case k == task.PartAnswer:
		found, err = s.answers(ctx, id, name)
	case k == task.PartQuestion && name == "":
		found, err = s.questions(ctx, id, from)
	default:
		found, err = s.exactly(ctx, id, task.Part{Kind: k, Name: name, Epoch: from})
	}
	parts := make([]task.Part, len(found))
	for n := 0; n < len(found) && err == nil; n++ {
		parts[n], err = s.whole(ctx, id, found[n])
	}
	switch {
	case errors.Is(err, task.ErrCorrupt), errors.Is(err, task.ErrNotFound):
		return nil, err
	case err != nil:
		return nil, s.failed(ctx, "read parts", err)
	}
	return parts, nil
}

// stored is a part of which only its first item was read.
type stored struct {
	task.Part
	first item
}

// record is what of a task was read together.
type record struct {
	head  item // nil: gone
	items []item
}

// with reads the head together with the items from lowest to highest, of which it is one.
func (s *Store) with(ctx context.Context, id, lowest, highest string) (record, error) {
	items, err := s.between(ctx, taskPrefix+id, lowest, highest)
	if err != nil {
		return record{}, err
	}
	r := record{items: items}
	if n := slices.IndexFunc(items, func(i item) bool { return sortOf(i) == headSort }); n >= 0 {
		r.head = items[n]
		r.items = slices.Delete(items, n, n+1)
	}
	return r, nil
}

// missing is the error for a part that has to be there.
func (r record) missing() error {
	if r.head == nil {
		return task.ErrNotFound
	}
	return task.ErrCorrupt
}

// by chooses, of parts that several writes put where one counts, that of the first of writes.
// Where the head is gone nobody knows the writes any more; then it is the only one.
func (r record) by(writes []string, parts map[string]stored) (stored, bool) {
	if r.head == nil && len(parts) == 1 {
		writes = slices.Collect(maps.Keys(parts))
	}
	for _, write := range writes {
		if p, ok := parts[write]; ok {
			return p, true
		}
	}
	return stored{}, false
}

func (s *Store) call(ctx context.Context, id string) ([]stored, error) {
	r, err := s.with(ctx, id, callPrefix, headSort)
	if err != nil {
		return nil, err
	}
	parts := map[string]stored{}
	for _, i := range r.items {
		parts[strings.TrimPrefix(sortOf(i), callPrefix)] = stored{task.Part{Kind: task.PartCall}, i}
	}
	called, err := readText(r.head[attrCalled])
	if err != nil {
		return nil, wrongAttribute(attrCalled, err)
	}
	p, ok := r.by([]string{called}, parts)
	if !ok {
		return nil, r.missing()
	}
	return []stored{p}, nil
}

func (s *Store) answers(ctx context.Context, id, name string) ([]stored, error) {
	highest := after(answerPrefix)
	if name != "" {
		highest = after(answerPrefix + name + "#")
	}
	r, err := s.with(ctx, id, headSort, highest)
	if err != nil {
		return nil, err
	}
	byName := map[string]map[string]stored{} // then by write
	for _, i := range r.items {
		of, write := answerOf(sortOf(i))
		if name != "" && name != of {
			continue
		}
		if byName[of] == nil {
			byName[of] = map[string]stored{}
		}
		byName[of][write] = stored{task.Part{Kind: task.PartAnswer, Name: of}, i}
	}
	writes, err := readTexts(r.head[attrWrites])
	if err != nil {
		return nil, wrongAttribute(attrWrites, err)
	}
	var found []stored
	for _, of := range slices.Sorted(maps.Keys(byName)) {
		if p, ok := r.by(writes, byName[of]); ok {
			found = append(found, p)
		}
	}
	if len(found) == 0 && r.head == nil {
		return nil, task.ErrNotFound
	}
	return found, nil
}

// entries are those of the journal; one with which the task began gives way to one of an
// equal or higher epoch.
func (s *Store) entries(ctx context.Context, id string, from, to uint32) ([]stored, error) {
	if from >= to {
		return nil, nil
	}
	r, err := s.journal(ctx, id, from, to)
	if err != nil {
		return nil, err
	}
	begun, err := s.begun(ctx, id, r, from, to)
	if err != nil {
		return nil, err
	}
	bySeq := make(map[uint32]stored, len(r.items)+len(begun))
	for _, i := range append(begun, r.items...) {
		_, seq, err := entryOf(sortOf(i))
		if err != nil {
			return nil, err
		}
		p := stored{task.Part{Kind: task.PartEntry, Seq: seq}, i}
		if p.Epoch, err = readNumber[uint32](i[attrEpoch]); err != nil {
			return nil, wrongAttribute(attrEpoch, err)
		}
		if other, twice := bySeq[p.Seq]; !twice || other.Epoch <= p.Epoch {
			bySeq[p.Seq] = p
		}
	}
	var found []stored
	for seq := from; seq < to; seq++ {
		p, ok := bySeq[seq]
		if !ok {
			return nil, r.missing()
		}
		found = append(found, p)
	}
	return found, nil
}

// journal reads entries that claims have put, and the head.
func (s *Store) journal(ctx context.Context, id string, from, to uint32) (record, error) {
	highest := entryPrefix + ten(to-1)
	if from > 0 {
		head, err := s.get(ctx, headKey(id))
		if err != nil {
			return record{}, err
		}
		items, err := s.between(ctx, taskPrefix+id, entryPrefix+ten(from), highest)
		return record{head, items}, err
	}
	r, err := s.with(ctx, id, headSort, highest)
	r.items = slices.DeleteFunc(r.items, func(i item) bool { return !strings.HasPrefix(sortOf(i), entryPrefix) })
	return r, err
}

// begun reads entries with which the task began, if there are any. Where the head is gone
// nobody knows which write counts any more; then it is the only one.
func (s *Store) begun(ctx context.Context, id string, r record, from, to uint32) ([]item, error) {
	lowest, highest := begunPrefix, after(begunPrefix)
	if r.head != nil {
		if r.head[attrBegunWith] == nil {
			return nil, nil
		}
		write, err := readText(r.head[attrBegun])
		if err != nil {
			return nil, wrongAttribute(attrBegun, err)
		}
		lowest, highest = begunPrefix+write+"#"+ten(from), begunPrefix+write+"#"+ten(to-1)
	}
	items, err := s.between(ctx, taskPrefix+id, lowest, highest)
	if err != nil || r.head != nil || len(items) == 0 {
		return items, err
	}
	first, _, err := entryOf(sortOf(items[0]))
	last, _, other := entryOf(sortOf(items[len(items)-1]))
	if err == nil && other == nil && first != last {
		err = task.ErrNotFound
	}
	return items, err
}

// exactly is the one part of this kind, name and epoch.
func (s *Store) exactly(ctx context.Context, id string, p task.Part) ([]stored, error) {
	first, err := s.get(ctx, key(taskPrefix+id, partSort(&p, "", false)))
	if err != nil || first != nil {
		return []stored{{p, first}}, err
	}
	head, err := s.get(ctx, headKey(id))
	if err != nil {
		return nil, err
	}
	return nil, record{head: head}.missing()
}

// questions are all of an epoch.
func (s *Store) questions(ctx context.Context, id string, epoch uint32) ([]stored, error) {
	prefix := questionPrefix + ten(epoch) + "#"
	items, err := s.between(ctx, taskPrefix+id, prefix, after(prefix))
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		if head, err := s.get(ctx, headKey(id)); err != nil || head != nil {
			return nil, err
		}
		return nil, task.ErrNotFound
	}
	found := make([]stored, len(items))
	for n, i := range items {
		found[n] = stored{task.Part{Kind: task.PartQuestion, Name: strings.TrimPrefix(sortOf(i), prefix), Epoch: epoch}, i}
	}
	return found, nil
}

// whole is a part with all of its pieces.
func (s *Store) whole(ctx context.Context, id string, p stored) (task.Part, error) {
	var err error
	if p.Data, err = readBytes(p.first[attrData]); err != nil {
		return task.Part{}, wrongAttribute(attrData, err)
	}
	if p.Epoch, err = readNumber[uint32](p.first[attrEpoch]); err != nil {
		return task.Part{}, wrongAttribute(attrEpoch, err)
	}
	length, err := readNumber[uint64](p.first[attrLength])
	if err != nil {
		return task.Part{}, wrongAttribute(attrLength, err)
	}
	rest, err := readText(p.first[attrRest])
	if err != nil {
		return task.Part{}, wrongAttribute(attrRest, err)
	}
	if rest != "" {
		pieces, err := s.between(ctx, taskPrefix+id, rest, after(rest))
		if err != nil {
			return task.Part{}, err
		}
		for _, i := range pieces {
			data, err := readBytes(i[attrData])
			if err != nil {
				return task.Part{}, wrongAttribute(attrData, err)
			}
			p.Data = append(p.Data, data...)
		}
	}
	if uint64(len(p.Data)) != length {
		return task.Part{}, task.ErrCorrupt
	}
	return p.Part, nil
}
