package thaw_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/thaw-mcp/thaw"

// arrow says what one package, or a folder of them (/* one level, /... all), may import: of
// ours, and of others. The standard library is always allowed.
type arrow struct {
	from   string
	ours   []string
	others []string
	why    string
}

const jsonLibrary = "github.com/go-json-experiment/json"

// arrows are the rules of the house. The first that matches a package holds; a package
// that none matches fails the test, so a new one has to state its place.
var arrows = []arrow{
	{"internal/strictjson", nil, []string{jsonLibrary}, "a leaf below everything: JSON and nothing else"},
	{"internal/call", nil, nil, "thaw and serve meet here, so it knows neither"},
	{"internal/schema", []string{"internal/strictjson"}, []string{jsonLibrary}, "schemas know types and JSON, not tools; other implementations of JSON Schema judge ours in tests"},
	{"mcp", []string{"internal/strictjson"}, nil, "wire types are a leaf; they share one JSON encoder with the rest"},
	{"mctp", []string{"internal/strictjson"}, nil, "forms are a leaf: what MCTP looks like, without what it does"},
	{"internal/declared", []string{"mcp", "internal/schema"}, nil, "what serve needs of an author's declarations, without either's behaviour"},
	{"internal/input", []string{"mcp", "internal/schema", "internal/strictjson"}, nil, "what a client can be asked: shapes and schemas, no calls"},
	{"internal/journal", []string{"internal/call", "internal/strictjson"}, nil, "how a call is run again knows no protocol and no server"},
	{"internal/canon", []string{"internal/strictjson"}, nil, "a digest of JSON values"},
	{"internal/awsconfig", nil, []string{"github.com/aws/aws-sdk-go-v2"}, "where AWS clients get their settings, so that one place keeps the SDK's loader out of Lambda builds"},
	{"internal/lambdasim", nil, nil, "Lambda for tests: it runs programs, and knows none of them"},
	{"internal/gatewaysim", []string{"internal/lambdasim"}, nil, "front doors for tests: they know Lambda and HTTP, not what is behind"},
	{"statecodec", nil, nil, "what seals states is read with the standard library alone beside it"},
	{"statecodec/filekey", []string{"statecodec"}, nil, "a key knows its contract alone"},
	{"statecodec/awskms", []string{"statecodec", "internal/awsconfig"}, []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}, "a key knows its contract alone and adds one SDK"},
	{"", []string{"mcp", "internal/call", "internal/declared", "internal/input", "internal/schema", "internal/strictjson"}, []string{"github.com/yosida95/uritemplate/v3"},
		"authors write against a package that knows no cloud and no HTTP"},
	{"runtime/host", nil, nil, "any http.Handler can be hosted, so a host knows no MCP"},
	{"auth", []string{"", "internal/strictjson", "runtime/host"}, []string{"github.com/golang-jwt/jwt/v5", "github.com/MicahParks/jwkset"},
		"it makes a thaw.Principal of a request; libraries do signatures and parse keys, hosts hand over what a gateway verified"},
	{"runtime/serve", []string{"", "mcp", "auth", "internal/call", "internal/canon", "internal/declared", "internal/input", "internal/journal", "internal/schema", "internal/strictjson",
		"runtime/host", "statecodec", "statecodec/filekey", "task", "mctp"},
		[]string{"go.opentelemetry.io/otel", "golang.org/x/time/rate"}, "the core joins all of these and knows no cloud SDK"},
	{"runtime/lambdahost", []string{"runtime/host", "task"}, []string{"github.com/aws/aws-lambda-go", jsonLibrary}, "a host adds one SDK and hosts any handler; it reads the messages of tasks"},
	{"runtime/awskit", []string{"dynamostore", "runtime/host", "runtime/lambdahost", "runtime/serve", "statecodec", "statecodec/awskms", "task", "task/lambdadispatch", "task/sqsdispatch"}, nil, "a kit only joins"},
	{"runtime/localkit", []string{"runtime/serve", "statecodec", "statecodec/filekey", "task", "task/memstore", "task/sqlitestore"}, nil, "a kit only joins"},
	{"task", []string{"internal/call"}, nil, "the engine and its store know no protocol and no handlers; what a cancelled call ends with they share with the author's package"},
	{"task/memstore", []string{"task"}, nil, "a store knows its contract alone"},
	{"task/sqsdispatch", []string{"task", "internal/awsconfig"}, []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}, "who sends messages knows its contract alone and adds one SDK"},
	{"task/lambdadispatch", []string{"task", "internal/awsconfig"}, []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}, "who sends messages knows its contract alone and adds one SDK"},
	{"task/sqlitestore", []string{"task"}, []string{"modernc.org/sqlite"}, "a store knows its contract alone and adds one library"},
	{"dynamostore", []string{"task", "internal/awsconfig"}, []string{"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}, "a store knows its contract alone and adds one SDK"},
	{"task/storetest", []string{"task"}, nil, "the contract as tests knows no store"},
	{"thawtest", []string{"", "auth", "mcp", "internal/call", "runtime/host", "runtime/serve", "internal/input", "internal/journal", "internal/strictjson", "statecodec", "task", "task/memstore"}, nil, "it drives tools through the real core"},
	{"functions", []string{"", "functions/*"}, nil, "the list of tools"},
	{"functions/server", []string{"functions", "functions/deletefiles", "functions/deletefiles/dirfiles", "functions/deletefiles/s3files", "functions/provision", "functions/provision/dircloud", "functions/provision/s3cloud", "internal/awsconfig",
		"runtime/serve", "runtime/awskit", "runtime/localkit"}, []string{"github.com/aws/aws-sdk-go-v2/service/s3"}, "a main imports everything"},
	{"functions/deletefiles/dirfiles", []string{"functions/deletefiles"}, nil, "a place for files knows its contract alone"},
	{"functions/deletefiles/s3files", []string{"functions/deletefiles"}, []string{"github.com/aws/aws-sdk-go-v2"}, "a place for files knows its contract alone and adds one SDK"},
	{"functions/deletefiles/filestest", []string{"functions/deletefiles"}, nil, "the contract as tests knows no place for files"},
	{"functions/provision/dircloud", []string{"functions/provision"}, nil, "a cloud knows its contract alone"},
	{"functions/provision/s3cloud", []string{"functions/provision"}, []string{"github.com/aws/aws-sdk-go-v2"}, "a cloud knows its contract alone and adds one SDK"},
	{"functions/textanalysis", []string{""}, []string{"github.com/jonreiter/govader/data"}, "a folder of tools imports thaw alone of ours, so it never knows where it runs"},
	{"functions/*", []string{""}, nil, "a folder of tools imports thaw alone of ours, so it never knows where it runs"},
	{"cmd/thaw", nil, []string{"golang.org/x/mod"}, "it writes programs that import thaw, and links none of it"},
	{"examples/...", []string{"", "mcp", "runtime/serve", "runtime/awskit", "runtime/localkit"}, nil, "what a user's program would import"},
	{"conformance/...", []string{"", "mcp", "runtime/host", "runtime/serve", "runtime/awskit", "runtime/lambdahost", "runtime/localkit", "conformance/fixture", "thawtest"}, []string{"go.yaml.in/yaml/v3", jsonLibrary},
		"the black box and its driver use what users use"},
}

// forTests are written for the tests of others, so they may import testing. That no server
// links them is kept by the arrows.
var forTests = []string{
	"thawtest",                        // drives an author's tool
	"task/storetest",                  // holds a store to its contract
	"functions/deletefiles/filestest", // holds a place for files to its contract
}

type listed struct {
	ImportPath string
	Name       string
	Imports    []string
	Standard   bool
}

func listPackages(t *testing.T, args ...string) []listed {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-json=ImportPath,Name,Imports,Standard"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// matches says whether a package is the one that pattern names, or in the folder of them.
func matches(pattern, name string) bool {
	if folder, all := strings.CutSuffix(pattern, "/..."); all {
		return strings.HasPrefix(name, folder+"/")
	}
	matched, err := path.Match(pattern, name)
	return matched && err == nil
}

func TestArrows(t *testing.T) {
	standard := map[string]bool{}
	for _, p := range listPackages(t, "std") {
		standard[p.ImportPath] = true
	}
	mains := map[string]bool{}
	packages := listPackages(t, "./...")
	for _, p := range packages {
		mains[p.ImportPath] = p.Name == "main"
	}
	for _, p := range packages {
		from := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		i := slices.IndexFunc(arrows, func(a arrow) bool { return matches(a.from, from) })
		if i < 0 {
			t.Errorf("package %q has no arrow: say in arrows_test.go what it may import, and why", from)
			continue
		}
		a := arrows[i]
		for _, imported := range p.Imports {
			switch own, ours := strings.CutPrefix(imported, module); {
			case standard[imported] || imported == "C":
				if imported == "testing" && !slices.Contains(forTests, from) {
					t.Errorf("%q imports testing outside tests", from)
				}
			case mains[imported]:
				t.Errorf("%q imports the main %q", from, imported)
			case ours && !slices.ContainsFunc(a.ours, func(o string) bool { return matches(o, strings.TrimPrefix(own, "/")) }):
				t.Errorf("%q imports %q; it may not: %s", from, strings.TrimPrefix(own, "/"), a.why)
			case !ours && !slices.ContainsFunc(a.others, func(o string) bool { return imported == o || strings.HasPrefix(imported, o+"/") }):
				t.Errorf("%q imports %q; it may not: %s", from, imported, a.why)
			}
		}
	}
}
