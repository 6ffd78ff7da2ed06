package memstore

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/task"
)

// partKey is what names a part within its record.
type partKey struct {
	kind   task.Kind
	name   string
	number uint32 // of an entry its Seq, of a question or an outcome its Epoch
}

func keyOf(p *task.Part) partKey {
	key := partKey{kind: p.Kind, name: p.Name}
	switch p.Kind {
	case task.PartEntry:
		key.number = p.Seq
	case task.PartQuestion, task.PartOutcome:
		key.number = p.Epoch
	}
	return key
}

// put stores p unless what is there stays.
func (r *record) put(p task.Part) {
	key := keyOf(&p)
	if old, there := r.parts[key]; there {
		once := p.Kind == task.PartCall || p.Kind == task.PartAnswer
		if once || old.Epoch > p.Epoch {
			return
		}
	}
	p.Data = bytes.Clone(p.Data)
	r.parts[key] = p
}

// Parts implements task.Store.
func (s *Store) Parts(ctx context.Context, id string, k task.Kind, name string, from, to uint32) ([]task.Part, error) {
	if err := task.CheckParts(id, k); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[id]
	if r == nil {
		return nil, task.ErrNotFound
	}
	switch {
	case k == task.PartCall:
		return r.present(partKey{kind: k})
	case k == task.PartEntry:
		return r.entries(from, to)
	case k == task.PartOutcome:
		return r.present(partKey{kind: k, number: from})
	case k == task.PartQuestion && name != "":
		return r.present(partKey{kind: k, name: name, number: from})
	case k == task.PartQuestion:
		return r.all(k, from), nil
	case name != "":
		return r.one(partKey{kind: k, name: name}), nil
	default:
		return r.all(k, 0), nil
	}
}

// one is the part of this key, if there is one.
func (r *record) one(key partKey) []task.Part {
	p, there := r.parts[key]
	if !there {
		return nil
	}
	p.Data = bytes.Clone(p.Data)
	return []task.Part{p}
}

// present is the part of this key, which has to be there.
func (r *record) present(key partKey) ([]task.Part, error) {
	parts := r.one(key)
	if len(parts) == 0 {
		return nil, task.ErrCorrupt
	}
	return parts, nil
}

func (r *record) entries(from, to uint32) ([]task.Part, error) {
	var parts []task.Part
	for seq := from; seq < to; seq++ {
		p, there := r.parts[partKey{kind: task.PartEntry, number: seq}]
		if !there {
			return nil, task.ErrCorrupt
		}
		p.Data = bytes.Clone(p.Data)
		parts = append(parts, p)
	}
	return parts, nil
}

// all is the parts of a kind and number, in order of name.
func (r *record) all(k task.Kind, number uint32) []task.Part {
	var parts []task.Part
	for key := range r.parts {
		if key.kind == k && key.number == number {
			parts = append(parts, r.one(key)...)
		}
	}
	slices.SortFunc(parts, func(a, b task.Part) int { return strings.Compare(a.Name, b.Name) })
	return parts
}
