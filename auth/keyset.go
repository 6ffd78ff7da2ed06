package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"slices"
	"strings"

	"github.com/MicahParks/jwkset"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// Bounds of an RSA modulus in bits: below the first it can be factored, and above the second
// one verification would hold a core for too long.
const (
	minRSA = 2048
	maxRSA = 8192
)

// keySet are the keys of a JWKS that can verify a signature.
type keySet struct {
	all  []*key
	byID map[string][]*key // providers that list one id for keys of two kinds exist
}

type key struct {
	public   crypto.PublicKey
	alg      string // "" if the key does not say
	verified verified
}

// find returns the keys that may have made a signature with alg. known is false if the set
// has no key with this id at all. A token without an id needs exactly one fitting key.
func (s *keySet) find(kid, alg string) (fitting []*key, known bool) {
	candidates := s.byID[kid]
	if kid == "" {
		candidates = s.all
	}
	for _, k := range candidates {
		if k.fits(alg) {
			fitting = append(fitting, k)
		}
	}
	if kid == "" && len(fitting) > 1 {
		return nil, true
	}
	return fitting, kid == "" || len(candidates) > 0
}

// fits says whether alg is an algorithm for this key: the library that verifies would take an
// elliptic key on another curve than the algorithm's.
func (k *key) fits(alg string) bool {
	if k.alg != "" && k.alg != alg {
		return false
	}
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return public.Curve == curves[alg]
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}

var curves = map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}

var errNoKeySet = errors.New("not a JWKS: it has no array keys")

// parseKeySet reads a JWKS. Keys that are not for verifying, or not fit for it, are left out:
// a set may well have some that this server does not know. So an empty set is no error.
func parseKeySet(text []byte) (*keySet, error) {
	object, err := checkObject(text)
	if err != nil {
		return nil, err
	}
	list := strictjson.Member(object, "keys")
	if strictjson.Kind(list) != '[' {
		return nil, errNoKeySet
	}
	s := &keySet{byID: make(map[string][]*key)}
	for value := range strictjson.Elements(list) {
		if k, kid := parseKey(value); k != nil {
			s.all = append(s.all, k)
			s.byID[kid] = append(s.byID[kid], k)
		}
	}
	return s, nil
}

// parseKey returns nil for a key that cannot be used. Of a certificate (x5c, x5u) it takes
// nothing, and follows no link.
func parseKey(value []byte) (k *key, kid string) {
	var j struct {
		KTY jwkset.KTY      `json:"kty"`
		USE jwkset.USE      `json:"use"`
		OPS []jwkset.KEYOPS `json:"key_ops"`
		ALG string          `json:"alg"`
		KID string          `json:"kid"`
		CRV jwkset.CRV      `json:"crv"`
		X   string          `json:"x"`
		Y   string          `json:"y"`
		N   string          `json:"n"`
		E   string          `json:"e"`
	}
	if strictjson.Unmarshal(value, &j) != nil {
		return nil, ""
	}
	if j.USE != "" && j.USE != jwkset.UseSig || j.OPS != nil && !slices.Contains(j.OPS, jwkset.KeyOpsVerify) {
		return nil, ""
	}
	parsed, err := jwkset.NewJWKFromMarshal(
		jwkset.JWKMarshal{KTY: j.KTY, CRV: j.CRV, X: j.X, Y: j.Y, N: j.N, E: j.E},
		jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return nil, ""
	}
	if public, ok := parsed.Key().(*rsa.PublicKey); ok && (public.N.BitLen() < minRSA || public.N.BitLen() > maxRSA) {
		return nil, ""
	}
	if j.ALG == "Ed25519" { // the newer name of the same algorithm on the same curve (RFC 9864)
		j.ALG = "EdDSA"
	}
	return &key{public: parsed.Key(), alg: j.ALG}, j.KID
}
