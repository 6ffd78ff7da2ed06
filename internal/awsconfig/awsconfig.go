// Package awsconfig makes the configuration that AWS clients are built of. In a build for
// Lambda, which has the tag lambda.norpc, it comes from what Lambda sets in the
// environment, and the SDK's loader, as large as all the rest of a client, stays out of the
// binary. In any other build that loader makes it, so files, profiles and roles work as
// users know them.
package awsconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Load returns the configuration. It does no network I/O. AWS_ENDPOINT_URL and
// AWS_ENDPOINT_URL_KMS and its like are honoured in every build.
func Load(ctx context.Context) (aws.Config, error) { return load(ctx) }

// fromEnvironment reads region, credentials and endpoints from the environment and
// nothing else. What Lambda puts there holds for as long as the instance lives.
func fromEnvironment() (aws.Config, error) {
	region := os.Getenv("AWS_REGION")
	if region == "" {
		region = os.Getenv("AWS_DEFAULT_REGION")
	}
	id, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	var missing []string
	for _, v := range [][2]string{{"AWS_REGION", region}, {"AWS_ACCESS_KEY_ID", id}, {"AWS_SECRET_ACCESS_KEY", secret}} {
		if v[1] == "" {
			missing = append(missing, v[0])
		}
	}
	if len(missing) > 0 {
		return aws.Config{}, errors.New("not set: " + strings.Join(missing, ", ") + "; a build for Lambda takes them from the environment only")
	}
	source, err := readEnvironment()
	if err != nil {
		return aws.Config{}, err
	}
	cfg := aws.Config{
		Region:        region,
		Credentials:   credentials.NewStaticCredentialsProvider(id, secret, os.Getenv("AWS_SESSION_TOKEN")),
		ConfigSources: []any{source},
	}
	if url := os.Getenv(endpointURL); url != "" && !source.ignoreEndpoints {
		cfg.BaseEndpoint = &url
	}
	return cfg, nil
}

const endpointURL = "AWS_ENDPOINT_URL"

// environment answers what clients ask of the sources of a configuration, in the methods
// by which the SDK finds them.
type environment struct {
	ignoreEndpoints, fips, dualStack bool
}

func readEnvironment() (environment, error) {
	var e environment
	var problems []error
	for _, v := range []struct {
		name string
		to   *bool
	}{
		{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", &e.ignoreEndpoints},
		{"AWS_USE_FIPS_ENDPOINT", &e.fips},
		{"AWS_USE_DUALSTACK_ENDPOINT", &e.dualStack},
	} {
		switch value := strings.ToLower(os.Getenv(v.name)); value {
		case "true":
			*v.to = true
		case "", "false":
		default:
			problems = append(problems, fmt.Errorf("%s=%q; allowed are true and false", v.name, value))
		}
	}
	return e, errors.Join(problems...)
}

func (e environment) GetIgnoreConfiguredEndpoints(context.Context) (bool, bool, error) {
	return e.ignoreEndpoints, true, nil
}

func (environment) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	url := os.Getenv(endpointURL + "_" + strings.ReplaceAll(strings.ToUpper(service), " ", "_"))
	return url, url != "", nil
}

func (e environment) GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error) {
	return aws.FIPSEndpointStateEnabled, e.fips, nil
}

func (e environment) GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error) {
	return aws.DualStackEndpointStateEnabled, e.dualStack, nil
}
