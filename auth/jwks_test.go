package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// bubble runs f under a clock that stands still until everything waits, with a scheme that lives by it.
func bubble(t *testing.T, p *provider, change func(*JWTOptions), f func(t *testing.T, s Scheme)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, newTestJWT(t, p, func(o *JWTOptions) {
			o.Now = time.Now
			if change != nil {
				change(o)
			}
		}))
	})
}

// tokenOf is a token that the RSA key has signed under this id, good for two days from now on.
func tokenOf(t testing.TB, kid string) string {
	t.Helper()
	return sign(t, jwt.SigningMethodRS256, rsaKey(), goodHeader(map[string]any{"kid": kid}), goodClaims(map[string]any{"exp": time.Now().Add(48 * time.Hour).Unix()}))
}

// expectIn checks one answer and how long it took.
func expectIn(t *testing.T, s Scheme, token string, want error, took time.Duration) {
	t.Helper()
	start := time.Now()
	_, err := authenticate(t, s, token)
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	if got := time.Since(start); got != took {
		t.Errorf("took %v, want %v", got, took)
	}
}

func TestJWKSIsLazy(t *testing.T) {
	p := &provider{jwks: usualKeys()}
	bubble(t, p, nil, func(t *testing.T, s Scheme) {
		for _, line := range []string{"", "Basic x", "Bearer thaw_x", "Bearer x", "Bearer e30.e30.", "Bearer " + sign(t, jwt.SigningMethodHS256, []byte("k"), goodHeader(map[string]any{"alg": "HS256"}), goodClaims(nil))} {
			if _, ok, _ := s.Authenticate(requestWith(t, line)); ok {
				t.Errorf("%q passed", line)
			}
		}
		if n := p.fetches(); n != 0 {
			t.Errorf("%d fetches before a token needed a key", n)
		}
		for range 3 {
			expectIn(t, s, tokenOf(t, "k1"), nil, 0)
		}
		if n := p.fetches(); n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
	})
}

func TestJWKSSingleFlight(t *testing.T) {
	p := &provider{jwks: usualKeys(), delay: 2 * time.Second}
	bubble(t, p, nil, func(t *testing.T, s Scheme) {
		token := tokenOf(t, "k1")
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { expectIn(t, s, token, nil, 2*time.Second) })
		}
		wg.Wait()
		if n := p.fetches(); n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
	})
}

// A request that gives up does not take the fetch with it, which others wait for.
func TestJWKSFetchOutlivesItsRequest(t *testing.T) {
	p := &provider{jwks: usualKeys(), delay: 2 * time.Second}
	bubble(t, p, nil, func(t *testing.T, s Scheme) {
		token := tokenOf(t, "k1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := s.Authenticate(requestWith(t, "Bearer "+token).WithContext(ctx))
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("error %v, want ErrUnavailable", err)
		}
		expectIn(t, s, token, nil, time.Second)
		if n := p.fetches(); n != 1 {
			t.Errorf("%d fetches, want 1", n)
		}
	})
}

func TestJWKSMaxAge(t *testing.T) {
	tests := []struct {
		header string
		fresh  time.Duration
	}{
		{"", 15 * time.Minute},
		{"public", 15 * time.Minute},
		{"max-age=600", 10 * time.Minute},
		{"public, max-age=1800, must-revalidate", 30 * time.Minute},
		{`MAX-AGE="1800"`, 30 * time.Minute},
		{"max-age=0", 5 * time.Minute},
		{"max-age=299", 5 * time.Minute},
		{"no-store", 5 * time.Minute},
		{"no-cache, max-age=1800", 5 * time.Minute},
		{"max-age=3601", time.Hour},
		{"max-age=99999999999999999999999", time.Hour},
		{"max-age=-1", 15 * time.Minute},
		{"max-age=x", 15 * time.Minute},
		{"s-maxage=60", 15 * time.Minute},
	}
	for _, test := range tests {
		t.Run(test.header, func(t *testing.T) {
			p := &provider{jwks: usualKeys(), header: http.Header{"Cache-Control": {test.header}}}
			bubble(t, p, nil, func(t *testing.T, s Scheme) {
				token := tokenOf(t, "k1")
				expectIn(t, s, token, nil, 0)
				time.Sleep(test.fresh - time.Nanosecond)
				expectIn(t, s, token, nil, 0)
				if n := p.fetches(); n != 1 {
					t.Errorf("%d fetches while fresh, want 1", n)
				}
				time.Sleep(time.Nanosecond)
				expectIn(t, s, token, nil, 0)
				if n := p.fetches(); n != 2 {
					t.Errorf("%d fetches when no longer fresh, want 2", n)
				}
			})
		})
	}
}

// While the provider is down keys stay good for 24 h, and nobody waits for it.
func TestJWKSStale(t *testing.T) {
	p := &provider{jwks: usualKeys()}
	var log testLog
	bubble(t, p, func(o *JWTOptions) { o.Logger = log.logger() }, func(t *testing.T, s Scheme) {
		token := tokenOf(t, "k1")
		expectIn(t, s, token, nil, 0)
		p.set(func(p *provider) { p.fault = errors.New("no route to host") })
		time.Sleep(24*time.Hour - time.Nanosecond)
		expectIn(t, s, token, nil, 0)
		time.Sleep(time.Second)
		expectIn(t, s, token, ErrUnavailable, 0)
		p.set(func(p *provider) { p.fault = nil })
		time.Sleep(maxPause)
		expectIn(t, s, token, nil, 0)
	})
	if !strings.Contains(log.String(), "no route to host") || strings.Contains(log.String(), "/jwks") {
		t.Errorf("log:\n%s", &log)
	}
}

// The request that finds the keys too old waits for newer ones, but not for long; others do not.
func TestJWKSRefreshThatHangs(t *testing.T) {
	p := &provider{jwks: usualKeys()}
	bubble(t, p, nil, func(t *testing.T, s Scheme) {
		token := tokenOf(t, "k1")
		expectIn(t, s, token, nil, 0)
		time.Sleep(usualAge)
		p.set(func(p *provider) { p.delay = time.Hour })
		var wg sync.WaitGroup
		wg.Go(func() { expectIn(t, s, token, nil, patience) })
		synctest.Wait()
		for range 5 {
			expectIn(t, s, token, nil, 0)
		}
		wg.Wait()
		time.Sleep(fetchTime + minPause)
		if n := p.fetches(); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		p.set(func(p *provider) { p.delay = 100 * time.Millisecond })
		expectIn(t, s, token, nil, 100*time.Millisecond)
		expectIn(t, s, token, nil, 0)
		if n := p.fetches(); n != 3 {
			t.Errorf("%d fetches, want 3", n)
		}
	})
}

// Keys that could never be had are no refusal, and a provider that is down is left in peace.
func TestJWKSNeverReached(t *testing.T) {
	p := &provider{fault: errors.New("connection refused")}
	bubble(t, p, nil, func(t *testing.T, s Scheme) {
		token := tokenOf(t, "k1")
		const requests, gap = 1200, 100 * time.Millisecond
		for range requests {
			expectIn(t, s, token, ErrUnavailable, 0)
			time.Sleep(gap)
		}
		// Pauses of 1, 2, 4, 8, 16 and then 30 s in two minutes.
		if n := p.fetches(); n != 8 {
			t.Errorf("%d fetches in two minutes, want 8", n)
		}
		p.set(func(p *provider) { p.fault, p.jwks = nil, usualKeys() })
		time.Sleep(maxPause)
		expectIn(t, s, token, nil, 0)
	})
}

func TestJWKSHangs(t *testing.T) {
	p := &provider{jwks: usualKeys(), delay: time.Hour}
	bubble(t, p, nil, func(t *testing.T, s Scheme) {
		token := tokenOf(t, "k1")
		expectIn(t, s, token, ErrUnavailable, fetchTime)
		expectIn(t, s, token, ErrUnavailable, 0)
	})
}

func TestJWKSAnswersThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*provider){
		"not found":      func(p *provider) { p.status = http.StatusNotFound },
		"server error":   func(p *provider) { p.status = http.StatusInternalServerError },
		"no content":     func(p *provider) { p.status = http.StatusNoContent },
		"HTML":           func(p *provider) { p.jwks = "<html>" },
		"no keys":        func(p *provider) { p.jwks = `{}` },
		"KEYS":           func(p *provider) { p.jwks = strings.Replace(usualKeys(), "keys", "KEYS", 1) },
		"keys an object": func(p *provider) { p.jwks = `{"keys":{}}` },
		"a list":         func(p *provider) { p.jwks = `[]` },
		"two sets":       func(p *provider) { p.jwks = usualKeys() + usualKeys() },
		"nested deeply": func(p *provider) {
			p.jwks = `{"keys":[],"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`
		},
		"over 256 KiB":    func(p *provider) { p.jwks = usualKeys() + strings.Repeat(" ", maxKeySet+1-len(usualKeys())) },
		"without end":     func(p *provider) { p.jwks = strings.Repeat(" ", 4*maxKeySet) },
		"cut off":         func(p *provider) { p.jwks = usualKeys()[:100] },
		"duplicate names": func(p *provider) { p.jwks = `{"keys":[],` + usualKeys()[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{jwks: usualKeys()}
			change(p)
			bubble(t, p, nil, func(t *testing.T, s Scheme) { expectIn(t, s, tokenOf(t, "k1"), ErrUnavailable, 0) })
		})
	}
	t.Run("exactly 256 KiB", func(t *testing.T) {
		p := &provider{jwks: usualKeys() + strings.Repeat(" ", maxKeySet-len(usualKeys()))}
		bubble(t, p, nil, func(t *testing.T, s Scheme) { expectIn(t, s, tokenOf(t, "k1"), nil, 0) })
	})
}

// After a rotation the first token of the new key brings it in, and the old key is good while
// it is listed and not a moment longer than the next fetch, remembered signatures included.
func TestJWKSRotation(t *testing.T) {
	p := &provider{jwks: jwksOf(jwk("k1", rsaKey().Public(), nil))}
	bubble(t, p, nil, func(t *testing.T, s Scheme) {
		old, token := tokenOf(t, "k1"), tokenOf(t, "k2")
		expectIn(t, s, old, nil, 0)
		p.set(func(p *provider) {
			p.jwks = jwksOf(jwk("k1", rsaKey().Public(), nil), jwk("k2", rsaKey().Public(), nil))
			p.delay = 100 * time.Millisecond
		})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { expectIn(t, s, token, nil, 100*time.Millisecond) })
			wg.Go(func() { expectIn(t, s, old, nil, 0) })
		}
		wg.Wait()
		if n := p.fetches(); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		p.set(func(p *provider) { p.jwks, p.delay = jwksOf(jwk("k2", rsaKey().Public(), nil)), 0 })
		expectIn(t, s, old, nil, 0)
		time.Sleep(unknownGap)
		expectIn(t, s, tokenOf(t, "k3"), errKey, 0)
		expectIn(t, s, old, errKey, 0)
		expectIn(t, s, token, nil, 0)
	})
}

// Ids cost nothing to invent: they buy one fetch in 30 s, and next to no waiting.
func TestJWKSUnknownKey(t *testing.T) {
	t.Run("one fetch in 30 s", func(t *testing.T) {
		p := &provider{jwks: usualKeys()}
		bubble(t, p, nil, func(t *testing.T, s Scheme) {
			expectIn(t, s, tokenOf(t, "k1"), nil, 0)
			const minutes = 2
			for i := range minutes * 60 {
				expectIn(t, s, tokenOf(t, fmt.Sprint("forged", i)), errKey, 0)
				time.Sleep(time.Second)
			}
			if n := p.fetches(); n != 1+minutes*2 {
				t.Errorf("%d fetches, want %d", n, 1+minutes*2)
			}
		})
	})
	t.Run("the first token of all buys one", func(t *testing.T) {
		p := &provider{jwks: usualKeys()}
		bubble(t, p, nil, func(t *testing.T, s Scheme) {
			expectIn(t, s, tokenOf(t, "forged"), errKey, 0)
			if n := p.fetches(); n != 1 {
				t.Errorf("%d fetches, want 1", n)
			}
		})
	})
	t.Run("a provider that hangs", func(t *testing.T) {
		p := &provider{jwks: usualKeys()}
		bubble(t, p, nil, func(t *testing.T, s Scheme) {
			good := tokenOf(t, "k1")
			expectIn(t, s, good, nil, 0)
			p.set(func(p *provider) { p.delay = time.Hour })
			expectIn(t, s, tokenOf(t, "forged"), errKey, patience)
			for range 5 { // the fetch goes on, and nobody waits any more
				expectIn(t, s, tokenOf(t, "forged"), errKey, 0)
				expectIn(t, s, good, nil, 0)
			}
			time.Sleep(unknownGap)
			if n := p.fetches(); n != 2 {
				t.Errorf("%d fetches, want 2", n)
			}
		})
	})
	t.Run("a key that is known buys none", func(t *testing.T) {
		p := &provider{jwks: usualKeys()}
		bubble(t, p, nil, func(t *testing.T, s Scheme) {
			expectIn(t, s, tokenOf(t, "k1"), nil, 0)
			expectIn(t, s, tokenOf(t, "e1"), errKey, 0)
			expectIn(t, s, tokenOf(t, ""), nil, 0)
			if n := p.fetches(); n != 1 {
				t.Errorf("%d fetches, want 1", n)
			}
		})
	})
}

// A provider may withdraw all its keys.
func TestJWKSEmptied(t *testing.T) {
	p := &provider{jwks: usualKeys()}
	bubble(t, p, nil, func(t *testing.T, s Scheme) {
		token := tokenOf(t, "k1")
		expectIn(t, s, token, nil, 0)
		p.set(func(p *provider) { p.jwks = `{"keys":[]}` })
		time.Sleep(usualAge)
		expectIn(t, s, token, errKey, 0)
	})
}

func TestJWKSClockSetBack(t *testing.T) {
	p := &provider{jwks: usualKeys()}
	now := epoch
	s := newTestJWT(t, p, func(o *JWTOptions) { o.Now = func() time.Time { return now } })
	token := goodToken(t, nil)
	if _, err := authenticate(t, s, token); err != nil {
		t.Fatal(err)
	}
	now = epoch.Add(-30 * 24 * time.Hour)
	if _, err := authenticate(t, s, token); err != nil || p.fetches() != 2 {
		t.Errorf("error %v after %d fetches", err, p.fetches())
	}
}

// moved is an http.RoundTripper that answers with redirects, and with keys where there is none.
type moved struct {
	to  map[string]string
	got []string
}

func (m *moved) RoundTrip(r *http.Request) (*http.Response, error) {
	m.got = append(m.got, r.URL.String())
	w := httptest.NewRecorder()
	if location := m.to[r.URL.String()]; location != "" {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	} else {
		_, _ = w.WriteString(usualKeys())
	}
	return w.Result(), nil
}

// Redirects stay on their host and its scheme, whatever the client's own rule is.
func TestJWKSRedirects(t *testing.T) {
	const second = "https://idp.example.com/keys"
	tests := []struct {
		name string
		to   map[string]string
		got  []string
		err  error
	}{
		{"same host", map[string]string{testJWKS: "/keys"}, []string{testJWKS, second}, nil},
		{"same host in other letters", map[string]string{testJWKS: "https://IDP.example.com/keys"}, []string{testJWKS, "https://IDP.example.com/keys"}, nil},
		{"other host", map[string]string{testJWKS: "https://evil.example/jwks"}, []string{testJWKS}, ErrUnavailable},
		{"other host after the same one", map[string]string{testJWKS: second, second: "https://evil.example/jwks"}, []string{testJWKS, second}, ErrUnavailable},
		{"other port", map[string]string{testJWKS: "https://idp.example.com:8443/jwks"}, []string{testJWKS}, ErrUnavailable},
		{"in the clear", map[string]string{testJWKS: "http://idp.example.com/jwks"}, []string{testJWKS}, ErrUnavailable},
		{"to the platform's metadata", map[string]string{testJWKS: "http://169.254.169.254/latest/meta-data"}, []string{testJWKS}, ErrUnavailable},
		{"to a file", map[string]string{testJWKS: "file:///etc/passwd"}, []string{testJWKS}, ErrUnavailable},
		{"in a circle", map[string]string{testJWKS: testJWKS}, []string{testJWKS, testJWKS, testJWKS, testJWKS}, ErrUnavailable},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := &moved{to: test.to}
			client := &http.Client{Transport: m, CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
			s := newTestJWT(t, nil, func(o *JWTOptions) { o.Client = client })
			if _, err := authenticate(t, s, goodToken(t, nil)); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if !slices.Equal(m.got, test.got) {
				t.Errorf("requests %q, want %q", m.got, test.got)
			}
		})
	}
}

func TestRememberedSignatures(t *testing.T) {
	var v verified
	digest := func(i int) (d [32]byte) { d[0], d[1], d[2] = byte(i), byte(i>>8), byte(i>>16); return d }
	if v.has(digest(0), epoch) {
		t.Error("remembers what it never saw")
	}
	v.add(digest(0), epoch)
	if !v.has(digest(0), epoch.Add(rememberFor-1)) || v.has(digest(0), epoch.Add(rememberFor)) || v.has(digest(1), epoch) {
		t.Error("remembers for another time than a minute, or another token")
	}
	for i := range 10 * maxRemembered {
		v.add(digest(i), epoch.Add(time.Duration(i)*time.Millisecond))
		if len(v.until) > maxRemembered {
			t.Fatalf("%d tokens remembered, allowed are %d", len(v.until), maxRemembered)
		}
	}
	for i := range maxRemembered {
		v.add(digest(i), epoch.Add(time.Hour))
	}
	if !v.has(digest(maxRemembered-1), epoch.Add(time.Hour)) {
		t.Error("forgot the last token")
	}
}
