package statecodec

import "errors"

// What a state is refused for, and what a key service fails with: one sentinel a reason,
// in the order Open finds them. They are for the log and for tests: to a client all but
// the two of the key service are one bland refusal, so that it learns nothing from them.
// Errors that match them may carry more text, never a part of a token or a secret.
var (
	// ErrMalformed: not a token of this format.
	ErrMalformed = errors.New("statecodec: malformed")
	// ErrTooLarge: a token longer than MaxToken; from Seal, a journal longer than MaxJournal
	// or a round above MaxRounds.
	ErrTooLarge = errors.New("statecodec: too large")
	// ErrUnknownKey: sealed under a key that is not listed or no longer usable, or on a day
	// whose tokens have all expired.
	ErrUnknownKey = errors.New("statecodec: unknown key")
	// ErrKeyUnavailable: the key service did not answer, or not in time. Trying again later helps.
	ErrKeyUnavailable = errors.New("statecodec: key service unavailable")
	// ErrKeyDenied: the key service refuses the key that mints. Its operator has to act.
	ErrKeyDenied = errors.New("statecodec: key denied")
	// ErrForged: not sealed by a holder of the key, or changed since.
	ErrForged = errors.New("statecodec: forged")
	// ErrExpired: the state's time, or from Seal that of its whole call, is over.
	ErrExpired = errors.New("statecodec: expired")
	// ErrAudience: sealed for another server.
	ErrAudience = errors.New("statecodec: other audience")
	// ErrPrincipal: sealed for another caller.
	ErrPrincipal = errors.New("statecodec: other principal")
	// ErrRequest: sealed for another method, tool or arguments.
	ErrRequest = errors.New("statecodec: other request")
	// ErrStale: sealed by a revision of the tool that is no longer continued.
	ErrStale = errors.New("statecodec: stale revision")
	// ErrReplayed: a state that may be used once was used before. This package keeps no
	// record of uses and does not return it; whoever keeps one does.
	ErrReplayed = errors.New("statecodec: replayed")
)
