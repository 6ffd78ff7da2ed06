package awskms

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

const (
	testARN   = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	accessKey = "AKIDEXAMPLE"
	secretKey = "wJalrXUtnFEMIK7MDENG"
)

// fakeKMS speaks KMS's protocol with real HMACs, and fails as a test says.
type fakeKMS struct {
	*httptest.Server
	secret []byte
	calls  atomic.Int64
	// fault, if set, answers in the place of KMS.
	fault atomic.Pointer[fault]
}

type fault func(w http.ResponseWriter, r *http.Request, in generateMac)

func (f *fakeKMS) fail(with fault) { f.fault.Store(&with) }

type generateMac struct {
	KeyId, MacAlgorithm string
	Message             []byte
}

type generated struct {
	KeyId, MacAlgorithm string
	Mac                 []byte
}

func newFakeKMS(t *testing.T) *fakeKMS {
	f := &fakeKMS{secret: []byte("a secret that never leaves")}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeKMS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.calls.Add(1)
	var in generateMac
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &in) != nil || r.Method != http.MethodPost || r.URL.Path != "/" ||
		r.Header.Get("X-Amz-Target") != "TrentService.GenerateMac" || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
		refuse(w, http.StatusBadRequest, "SerializationException", "not a GenerateMac")
		return
	}
	if a := r.Header.Get("Authorization"); !strings.Contains(a, "Credential="+accessKey) || !strings.Contains(a, "/eu-west-1/kms/aws4_request") {
		refuse(w, http.StatusBadRequest, "UnrecognizedClientException", "not signed for this region")
		return
	}
	if fail := f.fault.Load(); fail != nil {
		(*fail)(w, r, in)
		return
	}
	f.answer(w, generated{in.KeyId, in.MacAlgorithm, f.mac(in.Message)})
}

func (f *fakeKMS) mac(message []byte) []byte {
	h := hmac.New(sha256.New, f.secret)
	h.Write(message)
	return h.Sum(nil)
}

func (f *fakeKMS) answer(w http.ResponseWriter, out generated) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		panic(err)
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"__type":%q,"message":%q}`, code, message)
}

func (f *fakeKMS) key(t *testing.T) *Key {
	t.Helper()
	k, err := New(aws.Config{
		Region:      "us-east-1", // not the key's
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""), BaseEndpoint: &f.URL,
		RetryMaxAttempts: 5, // not ours
	}, testARN)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
