package awskms

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/thaw-mcp/thaw/statecodec"
)

func TestMAC(t *testing.T) {
	f := newFakeKMS(t)
	got, err := f.key(t).MAC(t.Context(), []byte("message"))
	if err != nil || string(got) != string(f.mac([]byte("message"))) || f.calls.Load() != 1 {
		t.Errorf("MAC %x, %v after %d calls", got, err, f.calls.Load())
	}
}

func TestARNs(t *testing.T) {
	for _, c := range []struct{ arn, id, want string }{
		{testARN, "awskms:" + testARN, ""},
		{"arn:aws-cn:kms:cn-north-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
			"awskms:arn:aws-cn:kms:cn-north-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab", ""},
		{"arn:aws:kms:eu-west-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab",
			"awskms:arn:aws:kms:*:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab", ""},
		{"arn:aws:kms:us-east-1:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab",
			"awskms:arn:aws:kms:*:111122223333:key/mrk-1234abcd12ab34cd56ef1234567890ab", ""},
		{"", "", "no ARN of a KMS key; allowed is arn:aws:kms:REGION:ACCOUNT:key/ID"},
		{"1234abcd-12ab-34cd-56ef-1234567890ab", "", "no ARN"},
		{"alias/state", "", "an alias may name another key tomorrow"},
		{"arn:aws:kms:eu-west-1:111122223333:alias/state", "", "an alias may name another key tomorrow"},
		{"arn:aws:s3:eu-west-1:111122223333:key/1234abcd", "", "no ARN"},
		{"arn:aws:kms::111122223333:key/1234abcd", "", "no ARN"},
		{"arn:aws:kms:eu-west-1::key/1234abcd", "", "no ARN"},
		{"arn:aws:kms:eu-west-1:111122223333:key/", "", "no ARN"},
		{"arn:aws:kms:eu-west-1:111122223333:1234abcd", "", "no ARN"},
		{"arn:aws:kms:eu-west-1:111122223333:key/1234/abcd", "", "no ARN"},
		{"arn:aws:kms:eu-west-1:111122223333:key/1234abcd ", "", "no ARN"},
		{"arn:aws:kms:*:111122223333:key/mrk-1234abcd", "", "no ARN"}, // what ID returns is no ARN
		{"arn:aws:kms:eu-west-1:me:key/1234abcd", "", "no ARN"},
	} {
		k, err := New(aws.Config{}, c.arn)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got error %v, want one with %q", c.arn, err, c.want)
			}
			continue
		}
		if err != nil || k.ID() != c.id {
			t.Errorf("%q: %v, %v", c.arn, k, err)
		}
	}
}

// TestFailures is what KMS can say, and what that means.
func TestFailures(t *testing.T) {
	code := func(status int, code string) fault {
		return func(w http.ResponseWriter, _ *http.Request, _ generateMac) {
			refuse(w, status, code, "because of the weather")
		}
	}
	raw := func(status int, body string) fault {
		return func(w http.ResponseWriter, _ *http.Request, _ generateMac) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	f := newFakeKMS(t)
	out := func(edit func(*generated)) fault {
		return func(w http.ResponseWriter, _ *http.Request, in generateMac) {
			g := generated{in.KeyId, in.MacAlgorithm, f.mac(in.Message)}
			edit(&g)
			f.answer(w, g)
		}
	}
	for _, c := range []struct {
		name  string
		fault fault
		want  error
		text  string
	}{
		{"access denied", code(400, "AccessDeniedException"), statecodec.ErrKeyDenied, "AccessDeniedException: because of the weather"},
		{"disabled", code(400, "DisabledException"), statecodec.ErrKeyDenied, "DisabledException"},
		{"pending deletion", code(400, "KMSInvalidStateException"), statecodec.ErrKeyDenied, "KMSInvalidStateException"},
		{"not found", code(400, "NotFoundException"), statecodec.ErrKeyDenied, "NotFoundException"},
		{"an encryption key", code(400, "InvalidKeyUsageException"), statecodec.ErrKeyDenied, "InvalidKeyUsageException"},
		{"another partition", code(400, "InvalidArnException"), statecodec.ErrKeyDenied, "InvalidArnException"},
		{"unknown credentials", code(400, "UnrecognizedClientException"), statecodec.ErrKeyDenied, "UnrecognizedClientException"},
		{"throttled", code(400, "ThrottlingException"), statecodec.ErrKeyUnavailable, "ThrottlingException"},
		{"limit", code(400, "LimitExceededException"), statecodec.ErrKeyUnavailable, "LimitExceededException"},
		{"key unavailable", code(500, "KeyUnavailableException"), statecodec.ErrKeyUnavailable, "KeyUnavailableException"},
		{"dependency timeout", code(503, "DependencyTimeoutException"), statecodec.ErrKeyUnavailable, "DependencyTimeoutException"},
		{"internal", code(500, "KMSInternalException"), statecodec.ErrKeyUnavailable, "KMSInternalException"},
		{"credentials expired", code(400, "ExpiredTokenException"), statecodec.ErrKeyUnavailable, "ExpiredTokenException"},
		{"a code that is new", code(400, "SomethingException"), statecodec.ErrKeyUnavailable, "SomethingException"},
		{"502 of a proxy", raw(502, "<html>bad gateway</html>"), statecodec.ErrKeyUnavailable, "502"},
		{"no JSON", raw(200, "<html>log in</html>"), statecodec.ErrKeyUnavailable, ""},
		{"half an answer", raw(200, `{"KeyId":"`), statecodec.ErrKeyUnavailable, ""},
		{"connection closed", func(http.ResponseWriter, *http.Request, generateMac) { panic(http.ErrAbortHandler) }, statecodec.ErrKeyUnavailable, ""},
		{"empty answer", raw(200, `{}`), statecodec.ErrKeyDenied, "another key's"},
		{"another key", out(func(g *generated) { g.KeyId = strings.Replace(g.KeyId, "1234abcd", "4321abcd", 1) }), statecodec.ErrKeyDenied, "another key's"},
		{"another algorithm", out(func(g *generated) { g.MacAlgorithm = "HMAC_SHA_512" }), statecodec.ErrKeyDenied, "another algorithm"},
		{"a short MAC", out(func(g *generated) { g.Mac = g.Mac[:31] }), statecodec.ErrKeyDenied, "31 bytes, not 32"},
		{"a long MAC", out(func(g *generated) { g.Mac = append(g.Mac, 0) }), statecodec.ErrKeyDenied, "33 bytes, not 32"},
		{"no MAC", out(func(g *generated) { g.Mac = nil }), statecodec.ErrKeyDenied, "0 bytes, not 32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.fail(c.fault)
			before := f.calls.Load()
			got, err := f.key(t).MAC(t.Context(), []byte("message"))
			if !errors.Is(err, c.want) || got != nil {
				t.Fatalf("MAC %x, %v; want %v", got, err, c.want)
			}
			if n := f.calls.Load() - before; n != 1 {
				t.Errorf("%d calls, want 1: trying again is not this package's", n)
			}
			text := err.Error()
			for _, want := range []string{"kms:GenerateMac on " + testARN, c.text} {
				if !strings.Contains(text, want) {
					t.Errorf("error %s does not say %q", text, want)
				}
			}
			if strings.Contains(text, secretKey) || strings.Contains(text, accessKey) || strings.Contains(text, "Signature=") {
				t.Errorf("a credential is in the error %s", text)
			}
		})
	}
}

func TestNetworkFailures(t *testing.T) {
	t.Run("nobody listens", func(t *testing.T) {
		f := newFakeKMS(t)
		k := f.key(t)
		f.Close()
		if _, err := k.MAC(t.Context(), []byte("message")); !errors.Is(err, statecodec.ErrKeyUnavailable) {
			t.Error(err)
		}
	})
	t.Run("nobody answers in time", func(t *testing.T) {
		f := newFakeKMS(t)
		arrived := make(chan struct{})
		f.fail(func(_ http.ResponseWriter, r *http.Request, _ generateMac) { close(arrived); <-r.Context().Done() })
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		_, err := f.key(t).MAC(ctx, []byte("message"))
		if !errors.Is(err, statecodec.ErrKeyUnavailable) || errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("no credentials", func(t *testing.T) {
		f := newFakeKMS(t)
		k, err := New(aws.Config{BaseEndpoint: &f.URL, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no role to be had")
		})}, testARN)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.MAC(t.Context(), []byte("message")); !errors.Is(err, statecodec.ErrKeyUnavailable) || !strings.Contains(err.Error(), "no role to be had") {
			t.Error(err)
		}
	})
}

// TestCodec: a Codec on KMS makes one call when cold, none when warm, two when KMS fails,
// and one when it denies.
func TestCodec(t *testing.T) {
	f := newFakeKMS(t)
	codec := func() *statecodec.Codec {
		c, err := statecodec.New([]statecodec.Key{f.key(t)}, &statecodec.Options{Jitter: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := statecodec.State{CallID: statecodec.NewCallID(), Round: 1}
	c := codec()
	var token string
	for range 100 {
		var err error
		if token, err = c.Seal(t.Context(), s, statecodec.Binding{}); err != nil {
			t.Fatal(err)
		}
	}
	if f.calls.Load() != 1 {
		t.Errorf("%d calls for 100 states, want 1", f.calls.Load())
	}
	for _, test := range []struct {
		code  string
		calls int64
		want  error
	}{
		{"ThrottlingException", 2, statecodec.ErrKeyUnavailable},
		{"DisabledException", 1, statecodec.ErrKeyDenied},
	} {
		f.fail(func(w http.ResponseWriter, _ *http.Request, _ generateMac) { refuse(w, 400, test.code, "") })
		f.calls.Store(0)
		if _, err := codec().Open(t.Context(), token, statecodec.Binding{}, 0); !errors.Is(err, test.want) || f.calls.Load() != test.calls {
			t.Errorf("%s: %v after %d calls, want %v after %d", test.code, err, f.calls.Load(), test.want, test.calls)
		}
		if _, err := c.Open(t.Context(), token, statecodec.Binding{}, 0); err != nil {
			t.Errorf("a warm instance does not outlive it: %v", err)
		}
	}
}

func TestScheme(t *testing.T) {
	f := newFakeKMS(t)
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": "", "AWS_REGION": "us-east-1",
		"AWS_ENDPOINT_URL_KMS": f.URL, "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
		if value == "" {
			os.Unsetenv(name)
		}
	}
	s := Scheme()
	k, err := s.Open(t.Context(), testARN)
	if err != nil || s.Name != "awskms" {
		t.Fatal(err)
	}
	if f.calls.Load() != 0 {
		t.Error("opening called KMS")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, err := k.MAC(ctx, []byte("message")); err != nil || string(got) != string(f.mac([]byte("message"))) {
		t.Errorf("MAC %x, %v", got, err)
	}
	if k, err := s.Open(t.Context(), "alias/state"); err == nil || k != nil {
		t.Errorf("opened %v, %v", k, err)
	}
}
