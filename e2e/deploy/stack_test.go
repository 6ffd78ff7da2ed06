package deploy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/e2e/internal/cloud"
	"github.com/thaw-mcp/thaw/e2e/internal/ministack"
)

// account is the emulator's.
type account struct {
	*cloud.Server
	s3 *s3.Client
}

// The buckets that a deployment finds in the account.
const (
	files        = "files-of-e2e"
	environments = "environments-of-e2e"
)

func open(t *testing.T) *account {
	t.Helper()
	server := ministack.Start(t, "AUTH=true")
	a := &account{server, s3.NewFromConfig(server.Config(), func(o *s3.Options) { o.UsePathStyle = true })}
	for _, name := range []string{files, environments} {
		if _, err := a.s3.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name, CreateBucketConfiguration: &s3types.CreateBucketConfiguration{
			LocationConstraint: s3types.BucketLocationConstraint(server.Config().Region)}}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// built is a project that was built for an account.
type built struct {
	*account
	folder string
	keys   map[string]string // API keys by name of their caller
}

// build builds the project in a folder, which it puts keys into.
func (a *account) build(t *testing.T, folder string) *built {
	t.Helper()
	b := &built{a, folder, map[string]string{}}
	var lines strings.Builder
	for _, name := range []string{"alice", "bob"} {
		key, line, err := auth.NewAPIKey(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.keys[name] = key
		fmt.Fprintln(&lines, line)
	}
	if err := os.WriteFile(filepath.Join(folder, "apikeys"), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	template := filepath.Join(folder, "template.yaml")
	// The emulator unpacks a function somewhere else than Lambda, and runs it in that folder.
	replace(t, template, 1, `'file:/var/task/apikeys'`, "'file:apikeys'")
	// Its alarms know no expressions.
	replace(t, template, 1, `(?s)      Metrics:\n        - \{Id: all.*?\n\n`,
		"      Namespace: AWS/SQS\n      MetricName: ApproximateNumberOfMessagesVisible\n      Statistic: Maximum\n      Period: 300\n\n")
	// It compares a number that a parameter gave as text, and polls no queue any more.
	replace(t, template, 1, `!Ref TasksAtOnce\b`, "50")
	// It holds every role to what it says, and knows no such condition.
	replace(t, template, 1, `\n +Condition: \{StringEquals: \{kms:MacAlgorithm: HMAC_SHA_256\}\}`, "")
	// It reads no x-amazon-apigateway-any-method.
	replace(t, template, 2, `x-amazon-apigateway-any-method:`, "post:")
	sam(t, folder, a.Env(), "build")
	return b
}

// stack is what sam deploy made.
type stack struct {
	*built
	outputs map[string]string
	ids     map[string]string // physical ids by logical ones
}

func (b *built) deploy(t *testing.T, name string, parameters ...string) *stack {
	t.Helper()
	sam(t, b.folder, b.Env(), append([]string{"deploy", "--stack-name", name, "--no-confirm-changeset", "--no-progressbar", "--parameter-overrides"}, parameters...)...)
	client := cloudformation.NewFromConfig(b.Config())
	s := &stack{b, map[string]string{}, map[string]string{}}
	described, err := client.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil || len(described.Stacks) != 1 {
		t.Fatalf("%+v, %v", described, err)
	}
	for _, o := range described.Stacks[0].Outputs {
		s.outputs[*o.OutputKey] = *o.OutputValue
	}
	resources, err := client.DescribeStackResources(t.Context(), &cloudformation.DescribeStackResourcesInput{StackName: &name})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.StackResources {
		s.ids[*r.LogicalResourceId] = *r.PhysicalResourceId
	}
	return s
}

// door brings what is sent to url to a function of the stack.
type door struct {
	*stack
	url      string
	function string // its logical id

	mu         sync.Mutex
	generation int // of the instances that may answer; 0: any
}

// door is the one whose address is an output of the stack.
func (s *stack) door(t *testing.T, output, function string) *door {
	t.Helper()
	public, err := url.Parse(s.outputs[output])
	if err != nil || public.Scheme != "https" || public.Host == "" {
		t.Fatalf("%s is %q", output, s.outputs[output])
	}
	emulator, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	// The emulator tells doors apart by Host, APIs by one below its own name.
	host := public.Host
	if id, ok := strings.CutSuffix(host, ".execute-api."+s.Config().Region+".amazonaws.com"); ok {
		host = id + ".execute-api." + emulator.Host
	}
	d := &door{stack: s, function: function}
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(emulator)
		r.Out.Host = host
		if origin := d.origin(); origin != "" {
			r.Out.Header.Set("Origin", origin)
		}
	}})
	t.Cleanup(server.Close)
	d.url = server.URL + public.Path
	return d
}

func (d *door) origin() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.generation == 0 {
		return ""
	}
	return fmt.Sprintf("https://generation-%d.example", d.generation)
}

// fresh has every further request answered by an instance that has seen none of before. Lambda
// takes new ones when a function's settings change; what changes is which Origin is let in,
// and no other one is sent from here on: an instance of before would answer 403.
func (d *door) fresh(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	d.generation++
	d.mu.Unlock()
	client, name := lambda.NewFromConfig(d.Config()), d.ids[d.function]
	was, err := client.GetFunctionConfiguration(t.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if err != nil {
		t.Fatal(err)
	}
	was.Environment.Variables["THAW_ALLOWED_ORIGINS"] = d.origin()
	if _, err := client.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: &name, Environment: &lambdatypes.Environment{Variables: was.Environment.Variables},
	}); err != nil {
		t.Fatal(err)
	}
}

// status is that of a request without a key.
func (d *door) status(t *testing.T) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// put puts an object into a bucket for each key.
func (a *account) put(t *testing.T, bucket string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := a.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("x")}); err != nil {
			t.Fatal(err)
		}
	}
}

// list are the keys of a bucket that begin with prefix, in order.
func (a *account) list(t *testing.T, bucket, prefix string) (keys []string) {
	t.Helper()
	out, err := a.s3.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range out.Contents {
		keys = append(keys, *object.Key)
	}
	slices.Sort(keys)
	return keys
}
