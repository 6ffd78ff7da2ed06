package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	fetchTime  = 3 * time.Second
	maxKeySet  = 256 << 10 // bytes
	minMaxAge  = 5 * time.Minute
	usualAge   = 15 * time.Minute // if the answer does not say
	maxMaxAge  = time.Hour
	maxStale   = 24 * time.Hour   // how long keys are good while no newer ones can be had
	unknownGap = 30 * time.Second // between two fetches for the sake of an unknown key id

	// patience is how long a request waits for newer keys although there are keys: long enough
	// for a provider that is well, and not so long that one that hangs is felt.
	patience = 500 * time.Millisecond

	minPause, maxPause = time.Second, 30 * time.Second // after a failed fetch
)

// jwks holds the keys that a URL publishes. Nothing is fetched before a request needs a key,
// one fetch at a time, and nothing runs between requests: an instance that freezes after its
// answer would freeze a fetch with it. That is why the request that finds the keys too old, or
// its own key id unknown, waits for the fetch that it starts, within bounds; others do not.
type jwks struct {
	url    *url.URL
	client *http.Client
	now    func() time.Time
	log    *slog.Logger

	mu      sync.Mutex
	keys    *keySet       // the last good answer; nil before the first
	fetched time.Time     // when it came
	maxAge  time.Duration // how long it is fresh
	flight  *flight       // the fetch under way, or nil
	pause   time.Duration // the last one after a failure; 0 after a success
	resume  time.Time     // no fetch starts before
	sought  time.Time     // when a fetch last started because of an unknown id
}

// flight is a fetch under way.
type flight struct {
	done    chan struct{}
	patient context.Context // ends when requests that could do without it stop waiting
}

// newJWKS returns a jwks that asks client, but under rules of its own for redirects.
func newJWKS(address *url.URL, client *http.Client, now func() time.Time, log *slog.Logger) *jwks {
	c := http.Client{}
	if client != nil {
		c = *client
	}
	c.CheckRedirect = stayOnHost
	return &jwks{url: address, client: &c, now: now, log: log}
}

// stayOnHost refuses redirects to other hosts: whoever can make a provider redirect would
// choose our keys.
func stayOnHost(r *http.Request, via []*http.Request) error {
	if first := via[0].URL; r.URL.Scheme != first.Scheme || !strings.EqualFold(r.URL.Host, first.Host) {
		return errors.New("a redirect to another host")
	}
	if len(via) > 3 {
		return errors.New("more than 3 redirects")
	}
	return nil
}

// find returns the keys that may have made a signature with alg under this id, none if there
// is no such key. The error is ErrUnavailable: there are no keys to look at.
func (j *jwks) find(ctx context.Context, kid, alg string) ([]*key, error) {
	keys, waited, err := j.current(ctx)
	if err != nil {
		return nil, err
	}
	fitting, known := keys.find(kid, alg)
	if !known && !waited {
		fitting, _ = j.newer(ctx).find(kid, alg)
	}
	return fitting, nil
}

// current returns the keys, fetching them if there are none that may be used, and trying to
// if they are no longer fresh. waited says that this request has waited for a fetch.
func (j *jwks) current(ctx context.Context) (keys *keySet, waited bool, err error) {
	j.mu.Lock()
	now := j.time()
	f, usable := j.flight, j.usable(now)
	starts := f == nil && (!usable || j.age(now) >= j.maxAge) && !now.Before(j.resume)
	if starts {
		f = j.start()
	}
	keys = j.keys
	j.mu.Unlock()

	switch {
	case usable && !starts:
		return keys, false, nil
	case usable:
		f.wait(ctx, f.patient.Done())
	case f == nil:
		return nil, false, fmt.Errorf("%w: the JWKS could not be fetched a moment ago", ErrUnavailable)
	default:
		f.wait(ctx, nil)
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.usable(j.time()) {
		return nil, true, fmt.Errorf("%w: the JWKS cannot be fetched", ErrUnavailable)
	}
	return j.keys, true, nil
}

// newer returns the keys after a fetch for the sake of an unknown id, or those there are if
// there has been such a fetch a moment ago: ids cost nothing to invent.
func (j *jwks) newer(ctx context.Context) *keySet {
	j.mu.Lock()
	now := j.time()
	if j.flight == nil && now.Sub(j.sought).Abs() >= unknownGap && !now.Before(j.resume) {
		j.sought = now
		j.start()
	}
	f := j.flight
	j.mu.Unlock()
	if f != nil {
		f.wait(ctx, f.patient.Done())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.keys
}

// time is the time of day: the other clock may stand still while an instance is frozen.
func (j *jwks) time() time.Time { return j.now().Round(0) }

// age counts a clock that was set back as one that went on.
func (j *jwks) age(now time.Time) time.Duration { return now.Sub(j.fetched).Abs() }

func (j *jwks) usable(now time.Time) bool { return j.keys != nil && j.age(now) < maxStale }

func (f *flight) wait(ctx context.Context, impatient <-chan struct{}) {
	select {
	case <-f.done:
	case <-ctx.Done():
	case <-impatient:
	}
}

// start begins a fetch. It belongs to no one request: others wait for it too.
func (j *jwks) start() *flight {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	f := &flight{make(chan struct{}), ctx}
	j.flight = f
	go func() {
		defer cancel()
		keys, maxAge, err := j.fetch()
		j.land(keys, maxAge, err)
		close(f.done)
		j.report(keys, err)
	}()
	return f
}

// report comes last, and a log that panics must not end the process: answers do not depend on it.
func (j *jwks) report(keys *keySet, err error) {
	defer func() { _ = recover() }()
	if err != nil {
		j.log.Warn("auth: JWKS not fetched", "host", j.url.Host, "error", err)
		return
	}
	j.log.Debug("auth: JWKS fetched", "host", j.url.Host, "keys", len(keys.all))
}

func (j *jwks) land(keys *keySet, maxAge time.Duration, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flight = nil
	if err != nil {
		j.pause = min(max(2*j.pause, minPause), maxPause)
		j.resume = j.time().Add(j.pause)
		return
	}
	j.keys, j.fetched, j.maxAge, j.pause, j.resume = keys, j.time(), maxAge, 0, time.Time{}
}

func (j *jwks) fetch() (*keySet, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, j.url.String(), nil)
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	r.Close = true // by the next fetch, minutes from now, the connection would be a dead one
	resp, err := j.client.Do(r)
	if err != nil {
		return nil, 0, withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKeySet+1))
	if err != nil {
		return nil, 0, err
	}
	if len(body) > maxKeySet {
		return nil, 0, fmt.Errorf("more than %d bytes", maxKeySet)
	}
	keys, err := parseKeySet(body)
	return keys, freshness(resp.Header), err
}

// withoutURL leaves out the URL, whose query may hold a secret.
func withoutURL(err error) error {
	var inner *url.Error
	if errors.As(err, &inner) {
		return inner.Err
	}
	return err
}

// freshness is how long an answer may be used before the next is asked for, within bounds:
// neither may a provider make us ask all the time, nor keep a withdrawn key alive for long.
func freshness(h http.Header) time.Duration {
	for directive := range strings.SplitSeq(strings.Join(h["Cache-Control"], ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			return minMaxAge
		case "max-age":
			seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 63)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				continue
			}
			return max(minMaxAge, time.Duration(min(seconds, uint64(maxMaxAge/time.Second)))*time.Second)
		}
	}
	return usualAge
}
