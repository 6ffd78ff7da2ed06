package memstore

import (
	"container/heap"
	"time"
)

// queue has records in the order of a time of theirs. The earliest is its first element.
type queue[R any] []*place[R]

// place is a record's in one queue. The zero place is in none.
type place[R any] struct {
	of     *R
	at     time.Time
	number int // of the element, from 1; 0: in no queue
}

// set puts r into q, or moves it there, to where at is.
func (q *queue[R]) set(p *place[R], r *R, at time.Time) {
	p.of, p.at = r, at
	if p.number == 0 {
		heap.Push(q, p)
	} else {
		heap.Fix(q, p.number-1)
	}
}

// remove takes a record out of q, if it is in there.
func (q *queue[R]) remove(p *place[R]) {
	if p.number > 0 {
		heap.Remove(q, p.number-1)
	}
}

// by is the first record if its time is not after t, else nil.
func (q queue[R]) by(t time.Time) *R {
	if len(q) == 0 || q[0].at.After(t) {
		return nil
	}
	return q[0].of
}

func (q queue[R]) Len() int           { return len(q) }
func (q queue[R]) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue[R]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].number, q[j].number = i+1, j+1
}

// Push implements heap.Interface.
func (q *queue[R]) Push(x any) {
	p := x.(*place[R])
	p.number = len(*q) + 1
	*q = append(*q, p)
}

// Pop implements heap.Interface.
func (q *queue[R]) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	p.number = 0
	(*q)[last] = nil
	*q = (*q)[:last]
	return p
}
