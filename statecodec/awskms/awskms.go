// Package awskms holds a key of a statecodec.Codec in AWS KMS, which computes MACs with it
// and never hands it out. The key has the spec HMAC_256 and the usage GENERATE_VERIFY_MAC,
// and serves one deployment alone. Whoever seals and opens needs kms:GenerateMac on its
// ARN, best under the condition kms:MacAlgorithm = HMAC_SHA_256, and nobody else does. KMS
// does not rotate such keys: make a new one and list both for a while.
package awskms

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"

	"github.com/thaw-mcp/thaw/internal/awsconfig"
	"github.com/thaw-mcp/thaw/statecodec"
)

// Scheme opens awskms:ARN with the credentials of the process. It calls nobody.
func Scheme() statecodec.KeyScheme {
	return statecodec.KeyScheme{
		Name:  "awskms",
		Usage: "awskms:ARN of an HMAC_256 key, no alias",
		Open: func(ctx context.Context, keyARN string) (statecodec.Key, error) {
			a, err := parse(keyARN)
			if err != nil {
				return nil, err
			}
			cfg, err := awsconfig.Load(ctx)
			if err != nil {
				return nil, fmt.Errorf("AWS configuration: %w", err)
			}
			return newKey(cfg, a), nil
		},
	}
}

// Key is a key in KMS. It is safe for concurrent use.
type Key struct {
	client *kms.Client
	arn    arn.ARN
}

// New returns the key with this ARN. Its region is the ARN's, whatever cfg says, and its
// client never tries again: a Codec does that itself, within its time.
func New(cfg aws.Config, keyARN string) (*Key, error) {
	a, err := parse(keyARN)
	if err != nil {
		return nil, err
	}
	return newKey(cfg, a), nil
}

func newKey(cfg aws.Config, a arn.ARN) *Key {
	return &Key{arn: a, client: kms.NewFromConfig(cfg, func(o *kms.Options) {
		o.Region = a.Region
		o.Retryer = aws.NopRetryer{}
	})}
}

const keyPrefix = "key/"

func parse(keyARN string) (arn.ARN, error) {
	a, err := arn.Parse(keyARN)
	switch {
	case strings.Contains(keyARN, "alias/"):
		return arn.ARN{}, errors.New("an alias may name another key tomorrow; allowed is the ARN of a key itself, " + form)
	case err != nil || a.Service != "kms" || !of(a.Region, letters+digits+"-") || !of(a.AccountID, digits) || !isKey(a.Resource):
		return arn.ARN{}, errors.New("no ARN of a KMS key; allowed is " + form)
	}
	return a, nil
}

const (
	form    = "arn:aws:kms:REGION:ACCOUNT:key/ID"
	letters = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

func isKey(resource string) bool {
	id, ok := strings.CutPrefix(resource, keyPrefix)
	return ok && of(id, letters+digits+"-")
}

// of reports whether s has characters and each is one of allowed.
func of(s, allowed string) bool { return s != "" && strings.Trim(s, allowed) == "" }

// ID is the ARN; that of a multi-Region key, whose replicas share one secret, has * for its
// region.
func (k *Key) ID() string {
	a := k.arn
	if strings.HasPrefix(a.Resource, keyPrefix+"mrk-") {
		a.Region = "*"
	}
	return "awskms:" + a.String()
}

// macSize is that of HMAC-SHA-256.
const macSize = 32

// MAC is one call of GenerateMac.
func (k *Key) MAC(ctx context.Context, message []byte) ([]byte, error) {
	name := k.arn.String()
	out, err := k.client.GenerateMac(ctx, &kms.GenerateMacInput{KeyId: &name, MacAlgorithm: types.MacAlgorithmSpecHmacSha256, Message: message})
	if err != nil {
		return nil, k.failure(err)
	}
	// What came back decides what every instance seals with, so it has to be what was asked for.
	switch {
	case aws.ToString(out.KeyId) != name:
		return nil, k.mismatch("the answer is another key's")
	case out.MacAlgorithm != types.MacAlgorithmSpecHmacSha256:
		return nil, k.mismatch("the answer is of another algorithm")
	case len(out.Mac) != macSize:
		return nil, k.mismatch(fmt.Sprintf("the answer has %d bytes, not %d", len(out.Mac), macSize))
	}
	return out.Mac, nil
}

func (k *Key) mismatch(what string) error {
	return fmt.Errorf("%w: kms:GenerateMac on %s: %s", statecodec.ErrKeyDenied, k.arn, what)
}

// failure says which of the two kinds err is. It keeps err's text for the log and not err
// itself: that a call timed out is no news about the request's own context.
func (k *Key) failure(err error) error {
	kind := statecodec.ErrKeyUnavailable
	text := err.Error()
	var answer smithy.APIError
	if errors.As(err, &answer) {
		text = answer.ErrorCode() + ": " + answer.ErrorMessage()
		if lasting[answer.ErrorCode()] {
			kind = statecodec.ErrKeyDenied
		}
	}
	return fmt.Errorf("%w: kms:GenerateMac on %s: %s", kind, k.arn, text)
}

// lasting are the answers that stay what they are until someone changes the key, the
// policy or the settings. Any other may be better the next time.
var lasting = map[string]bool{
	"AccessDeniedException":       true,
	"DisabledException":           true,
	"InvalidArnException":         true,
	"InvalidKeyUsageException":    true,
	"KMSInvalidStateException":    true, // pending deletion, among others
	"NotFoundException":           true,
	"OptInRequired":               true,
	"UnrecognizedClientException": true, // credentials that are none
	"ValidationException":         true,
}
