// Package kms holds the state codec against the work of others: local-kms as the key
// service, Tink as a second XAES-256-GCM.
package kms

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	localkms "github.com/nsmithuk/local-kms/src"
	"github.com/nsmithuk/local-kms/src/config"
	"github.com/nsmithuk/local-kms/src/data"

	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/statecodec/awskms"
	"github.com/thaw-mcp/thaw/statecodec/filekey"
)

// service is local-kms in this process. Its settings are global, so all of a process's are
// of one account and region.
type service struct {
	config aws.Config
	client *kms.Client
	macs   atomic.Int64 // calls of GenerateMac
}

func start(t *testing.T) *service {
	t.Helper()
	config.AWSRegion, config.AWSAccountId, config.DatabasePath = "eu-west-1", "111122223333", filepath.Join(t.TempDir(), "kms")
	database := data.NewDatabase(config.DatabasePath)
	t.Cleanup(database.Close)
	s := &service{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GenerateMac") {
			s.macs.Add(1)
		}
		localkms.HandleRequest(w, r, database)
	}))
	t.Cleanup(server.Close)
	s.config = aws.Config{Region: config.AWSRegion, BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "wJalrXUt", "")}
	s.client = kms.NewFromConfig(s.config)
	return s
}

// create makes a key and returns its ARN.
func (s *service) create(t *testing.T, spec types.KeySpec, usage types.KeyUsageType) string {
	t.Helper()
	out, err := s.client.CreateKey(t.Context(), &kms.CreateKeyInput{KeySpec: spec, KeyUsage: usage})
	if err != nil {
		t.Fatal(err)
	}
	return *out.KeyMetadata.Arn
}

func (s *service) hmacKey(t *testing.T) string {
	return s.create(t, types.KeySpecHmac256, types.KeyUsageTypeGenerateVerifyMac)
}

func (s *service) key(t *testing.T, arn string) statecodec.Key {
	t.Helper()
	k, err := awskms.New(s.config, arn)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// now is the time of all instances, so that midnight is never in between.
var now = time.Unix(1796040000, 0)

// instance is what another process has: nothing in memory.
func instance(t *testing.T, keys ...statecodec.Key) *statecodec.Codec {
	t.Helper()
	c, err := statecodec.New(keys, &statecodec.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var binding = statecodec.Binding{
	Audience:  statecodec.Audience("https://mcp.example.com/mcp"),
	Principal: statecodec.Principal("jwt", "https://idp.example.com", "alice", "", ""),
	Request:   statecodec.Request("tools/call", "transfer", [32]byte{1}),
}

func seal(t *testing.T, c *statecodec.Codec) string {
	t.Helper()
	token, err := c.Seal(t.Context(), statecodec.State{CallID: statecodec.NewCallID(), Round: 1, Journal: []byte("journal")}, binding)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func open(t *testing.T, c *statecodec.Codec, token string) error {
	t.Helper()
	s, err := c.Open(t.Context(), token, binding, 0)
	if err == nil && string(s.Journal) != "journal" {
		t.Errorf("opened to journal %q", s.Journal)
	}
	return err
}

// TestAnyInstanceContinues is B-36 with a key service: one call when cold, none when warm,
// and none for what is forged.
func TestAnyInstanceContinues(t *testing.T) {
	s := start(t)
	arn := s.hmacKey(t)
	calls := func(what string, want int64) {
		t.Helper()
		if got := s.macs.Swap(0); got != want {
			t.Errorf("%s: %d calls of the key service, want %d", what, got, want)
		}
	}
	first := instance(t, s.key(t, arn))
	calls("starting", 0)
	token := seal(t, first)
	calls("the first state of a cold instance", 1)
	for range 1000 {
		if err := open(t, first, seal(t, first)); err != nil {
			t.Fatal(err)
		}
	}
	calls("a warm instance", 0)

	second := instance(t, s.key(t, arn))
	if err := open(t, second, token); err != nil {
		t.Error(err)
	}
	calls("the first state of another cold instance", 1)
	if err := open(t, first, seal(t, second)); err != nil {
		t.Error(err)
	}
	calls("back on the first", 0)

	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "t1."))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 100_000 {
		forged := append([]byte(nil), raw...)
		if i%2 == 0 {
			forged[8+r.IntN(len(forged)-8)] ^= byte(1 + r.IntN(255)) // the rest of a genuine token
		} else {
			binary.BigEndian.PutUint64(forged, r.Uint64()) // a key and day of one's own
		}
		err := open(t, second, "t1."+base64.RawURLEncoding.EncodeToString(forged))
		if !errors.Is(err, statecodec.ErrForged) && !errors.Is(err, statecodec.ErrUnknownKey) {
			t.Fatalf("forged token %d: %v", i, err)
		}
	}
	calls("100,000 forged tokens", 0)

	third := instance(t, s.key(t, s.hmacKey(t)))
	if err := open(t, third, token); !errors.Is(err, statecodec.ErrUnknownKey) {
		t.Errorf("an instance with another key: %v", err)
	}
	calls("an instance with another key", 0)
}

// Keys may be of different kinds while one follows the other.
func TestRotationFromFileToKMS(t *testing.T) {
	s := start(t)
	file, err := filekey.OpenOrCreate(filepath.Join(t.TempDir(), ".thaw", "state.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := s.key(t, s.hmacKey(t))
	before, during, after, done := instance(t, file), instance(t, file, key), instance(t, key, file), instance(t, key)
	for _, c := range []struct {
		name     string
		from, to *statecodec.Codec
		want     error
	}{
		{"OLD to OLD,NEW", before, during, nil},
		{"OLD,NEW to OLD", during, before, nil},
		{"OLD,NEW to NEW,OLD", during, after, nil},
		{"NEW,OLD to OLD,NEW", after, during, nil},
		{"NEW,OLD to NEW", after, done, nil},
		{"OLD to NEW", before, done, statecodec.ErrUnknownKey},
	} {
		if err := open(t, c.to, seal(t, c.from)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestKeyStates: an operator can take a key away, and what the log then says names it.
func TestKeyStates(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		name string
		do   func(arn string) error
		key  func() string // default: an HMAC key
		text string
	}{
		{"disabled", func(arn string) error {
			_, err := s.client.DisableKey(t.Context(), &kms.DisableKeyInput{KeyId: &arn})
			return err
		}, nil, "Disabled"},
		{"pending deletion", func(arn string) error {
			_, err := s.client.ScheduleKeyDeletion(t.Context(), &kms.ScheduleKeyDeletionInput{KeyId: &arn, PendingWindowInDays: aws.Int32(7)})
			return err
		}, nil, "KMSInvalidStateException"},
		{"not there", nil, func() string { return "arn:aws:kms:eu-west-1:111122223333:key/00000000-0000-0000-0000-000000000000" }, "NotFoundException"},
		{"for encryption", nil, func() string { return s.create(t, types.KeySpecSymmetricDefault, types.KeyUsageTypeEncryptDecrypt) }, ""},
		{"for another hash", nil, func() string { return s.create(t, types.KeySpecHmac512, types.KeyUsageTypeGenerateVerifyMac) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			newKey := func() string { return s.hmacKey(t) }
			if c.key != nil {
				newKey = c.key
			}
			arn := newKey()
			var warm *statecodec.Codec
			var token string
			if c.do != nil {
				warm = instance(t, s.key(t, arn))
				token = seal(t, warm)
				if err := c.do(arn); err != nil {
					t.Fatal(err)
				}
			}
			s.macs.Store(0)
			cold := instance(t, s.key(t, arn))
			for range 3 { // denied is remembered
				err := cold.Ready(t.Context())
				if !errors.Is(err, statecodec.ErrKeyDenied) || !strings.Contains(err.Error(), "kms:GenerateMac on "+arn) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("ready: %v", err)
				}
			}
			if n := s.macs.Load(); n != 1 {
				t.Errorf("%d calls, want 1", n)
			}
			if c.do == nil {
				return
			}
			if err := open(t, warm, token); err != nil {
				t.Errorf("an instance that has today's keys: %v", err)
			}
			next := instance(t, s.key(t, s.hmacKey(t)), s.key(t, arn))
			if err := open(t, next, token); !errors.Is(err, statecodec.ErrUnknownKey) || errors.Is(err, statecodec.ErrKeyDenied) {
				t.Errorf("listed behind a new key: %v", err)
			}
		})
	}
}

// TestOutage: a key service that does not answer costs at most what it may, and an
// instance that has today's keys does not notice.
func TestOutage(t *testing.T) {
	s := start(t)
	arn := s.hmacKey(t)
	warm := instance(t, s.key(t, arn))
	token := seal(t, warm)
	down := s.config
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client left
		<-r.Context().Done()
	}))
	defer hung.Close()
	down.BaseEndpoint = &hung.URL
	key, err := awskms.New(down, arn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	begin := time.Now()
	if err := instance(t, key).Ready(ctx); !errors.Is(err, statecodec.ErrKeyUnavailable) || ctx.Err() != nil {
		t.Errorf("ready: %v", err)
	}
	t.Logf("refused after %v", time.Since(begin))
	if err := open(t, warm, token); err != nil {
		t.Error(err)
	}
}
