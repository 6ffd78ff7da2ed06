package awsconfig

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
)

// lambdaEnvironment is what Lambda sets, and nothing of this machine's.
func lambdaEnvironment(t *testing.T) {
	t.Helper()
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUt", "AWS_SESSION_TOKEN": "session",
		"AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none,
	} {
		t.Setenv(name, value)
	}
}

// loaders are Load and what Load is in a build for Lambda: a client must not see which.
var loaders = map[string]func(*testing.T) (aws.Config, error){
	"Load":            func(t *testing.T) (aws.Config, error) { return Load(t.Context()) },
	"fromEnvironment": func(*testing.T) (aws.Config, error) { return fromEnvironment() },
}

func TestLoad(t *testing.T) {
	for name, load := range loaders {
		t.Run(name, func(t *testing.T) {
			lambdaEnvironment(t)
			var calls atomic.Int64
			metadata := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
			defer metadata.Close()
			t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
			cfg, err := load(t)
			if err != nil {
				t.Fatal(err)
			}
			creds, err := cfg.Credentials.Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Region != "eu-west-1" || creds.AccessKeyID != "AKIDEXAMPLE" || creds.SecretAccessKey != "wJalrXUt" || creds.SessionToken != "session" {
				t.Errorf("region %s, key %s", cfg.Region, creds.AccessKeyID)
			}
			if cfg.BaseEndpoint != nil || kms.NewFromConfig(cfg).Options().BaseEndpoint != nil {
				t.Error("an endpoint that nobody set")
			}
			if calls.Load() != 0 {
				t.Errorf("%d network calls", calls.Load())
			}
		})
	}
}

func TestRegionByItsOtherName(t *testing.T) {
	lambdaEnvironment(t)
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "eu-north-1")
	for name, load := range loaders {
		if cfg, err := load(t); err != nil || cfg.Region != "eu-north-1" {
			t.Errorf("%s: region %s, %v", name, cfg.Region, err)
		}
	}
}

func TestEndpoints(t *testing.T) {
	const all, own = "http://127.0.0.1:4566", "http://127.0.0.1:4599"
	for _, c := range []struct {
		name, all, kms, ignore string
		want                   string
	}{
		{"none", "", "", "", ""},
		{"one for all", all, "", "", all},
		{"one for KMS", "", own, "", own},
		{"both", all, own, "", own},
		{"both, ignored", all, own, "true", ""},
		{"both, not ignored", all, own, "False", own},
	} {
		t.Run(c.name, func(t *testing.T) {
			lambdaEnvironment(t)
			for name, value := range map[string]string{endpointURL: c.all, endpointURL + "_KMS": c.kms, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": c.ignore} {
				if value != "" {
					t.Setenv(name, value)
				}
			}
			for name, load := range loaders {
				cfg, err := load(t)
				if err != nil {
					t.Fatal(err)
				}
				if got := aws.ToString(kms.NewFromConfig(cfg).Options().BaseEndpoint); got != c.want {
					t.Errorf("%s: KMS at %q, want %q", name, got, c.want)
				}
			}
		})
	}
}

// Each service has a variable of its own, named as the SDK names it.
func TestEndpointOfAnotherService(t *testing.T) {
	lambdaEnvironment(t)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "http://127.0.0.1:8000")
	for service, want := range map[string]string{"DynamoDB Streams": "http://127.0.0.1:8000", "DynamoDB": ""} {
		if got, found, err := (environment{}).GetServiceBaseEndpoint(t.Context(), service); got != want || found != (want != "") || err != nil {
			t.Errorf("%s: %q, %v, %v", service, got, found, err)
		}
	}
}

func TestEndpointKinds(t *testing.T) {
	lambdaEnvironment(t)
	for name, load := range loaders {
		for _, on := range []bool{false, true} {
			for _, variable := range []string{"AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"} {
				value := "false"
				if on {
					value = "true"
				}
				t.Setenv(variable, value)
			}
			cfg, err := load(t)
			if err != nil {
				t.Fatal(err)
			}
			o := kms.NewFromConfig(cfg).Options().EndpointOptions
			if fips, dual := o.GetUseFIPSEndpoint() == aws.FIPSEndpointStateEnabled, o.GetUseDualStackEndpoint() == aws.DualStackEndpointStateEnabled; fips != on || dual != on {
				t.Errorf("%s: FIPS %v, dual stack %v, want %v", name, fips, dual, on)
			}
		}
	}
}

func TestFromEnvironmentRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"no region, no credentials", map[string]string{"AWS_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
			"not set: AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY;"},
		{"no secret", map[string]string{"AWS_SECRET_ACCESS_KEY": ""}, "not set: AWS_SECRET_ACCESS_KEY;"},
		{"no such truth", map[string]string{"AWS_USE_FIPS_ENDPOINT": "yes"}, `AWS_USE_FIPS_ENDPOINT="yes"; allowed are true and false`},
	} {
		t.Run(c.name, func(t *testing.T) {
			lambdaEnvironment(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			if _, err := fromEnvironment(); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "wJalrXUt") {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}
