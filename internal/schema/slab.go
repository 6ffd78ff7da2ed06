package schema

// slab hands out zero values from a chunk, so that a walk over a type costs few
// allocations, and none when it is repeated. Pointers to them stay good until reset.
type slab[T any] struct{ chunk, free []T }

func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		s.chunk = make([]T, max(n, 2*len(s.chunk), 16))
		s.free = s.chunk
	}
	taken := s.free[:n:n]
	s.free = s.free[n:]
	return taken
}

// reset makes all that was handed out good for use again.
func (s *slab[T]) reset() {
	clear(s.chunk[:len(s.chunk)-len(s.free)])
	s.free = s.chunk
}
