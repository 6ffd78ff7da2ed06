package deploy

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/auth"
	"github.com/thaw-mcp/thaw/e2e/internal/fixture"
)

// issuer are the parameters of an identity provider, public those of addresses.
var (
	issuer = []string{"JwtIssuer=https://idp.example.com/", "JwtJwksUrl=https://idp.example.com/keys"}
	public = []string{"PublicUrl=https://mcp.example.com/mcp", "FilesPublicUrl=https://mcp.example.com/files/mcp"}
)

// Everybody gets to a function through its door alone, and through the door whom Auth lets.
func TestDoors(t *testing.T) {
	const (
		open   = "* lambda:InvokeFunctionUrl if FunctionUrlAuthType is NONE"
		byURL  = "* lambda:InvokeFunction if InvokedViaFunctionUrl is true"
		byHTTP = "apigateway.amazonaws.com lambda:InvokeFunction from arn:aws:execute-api:eu-central-1:123456789012:${HttpApi}/*"
		byREST = "apigateway.amazonaws.com lambda:InvokeFunction from arn:aws:execute-api:eu-central-1:123456789012:${RestApi}/*"
	)
	type want struct {
		permissions []string // to both functions
		door        string   // what the door asks of callers, and how it answers
		timeout     float64
		streaming   string
	}
	url := func(authType string) want { return want{nil, authType + " RESPONSE_STREAM", 120, "on"} }
	opened := want{[]string{byURL, open}, "NONE RESPONSE_STREAM", 120, "on"}
	buffered := func(w want) want {
		w.door, w.streaming = strings.Replace(w.door, "RESPONSE_STREAM", "BUFFERED", 1), "off"
		return w
	}
	httpAPI := func(routes string) want { return want{[]string{byHTTP}, routes, 29, "off"} }
	restAPI := func(auth string) want { return want{[]string{byREST}, auth + " STREAM 120000", 120, "on"} }
	tests := []struct {
		parameters []string
		want
	}{
		{[]string{"Auth=apikey"}, opened},
		{[]string{"Auth=none"}, opened},
		{slices.Concat([]string{"Auth=jwt"}, issuer, public), opened},
		{[]string{"Auth=iam"}, url("AWS_IAM")},
		{[]string{"Auth=apikey", "Streaming=off"}, buffered(opened)},
		{[]string{"Auth=apikey", "FrontDoor=http-api"}, httpAPI("NONE")},
		{slices.Concat([]string{"Auth=jwt", "FrontDoor=http-api"}, issuer), httpAPI("NONE")},
		{[]string{"Auth=iam", "FrontDoor=http-api"}, httpAPI("AWS_IAM")},
		{[]string{"Auth=gateway-jwt", "FrontDoor=http-api", issuer[0]}, httpAPI("JWT ${HttpAuthorizer}")},
		{[]string{"Auth=apikey", "FrontDoor=rest-api"}, restAPI("NONE")},
		{[]string{"Auth=apikey", "FrontDoor=rest-api", "Streaming=off"}, want{[]string{byREST}, "NONE BUFFERED 29000", 29, "off"}},
		{[]string{"Auth=iam", "FrontDoor=rest-api"}, restAPI("AWS_IAM")},
		{slices.Concat([]string{"Auth=jwt", "FrontDoor=rest-api"}, issuer, public), restAPI("NONE")},
	}
	tpl := translated(t)
	for _, tt := range tests {
		t.Run(strings.Join(tt.parameters, " "), func(t *testing.T) {
			d := tpl.with(t, append(tt.parameters, "FilesBucket=docs")...)
			if said := d.refusals(); len(said) > 0 {
				t.Fatalf("refused: %q", said)
			}
			made := d.all()
			for function, doors := range map[string][2]string{"ApiFunction": {"ApiUrl", "/{proxy+}"}, "FilesFunction": {"FilesUrl", "/files/{proxy+}"}} {
				if got := permissions(t, made, function); !slices.Equal(got, tt.permissions) {
					t.Errorf("%s may be invoked by\n%s", function, strings.Join(got, "\n"))
				}
				if got := asks(t, made, function, doors[0], doors[1]); got != tt.door {
					t.Errorf("%s is behind %q, want %q", function, got, tt.door)
				}
				if got := settings(made, function)["THAW_LAMBDA_STREAMING"]; got != tt.streaming {
					t.Errorf("%s has THAW_LAMBDA_STREAMING=%s, want %s", function, got, tt.streaming)
				}
			}
			if got := made["ApiFunction"].Properties["Timeout"]; got != tt.timeout {
				t.Errorf("ApiFunction has %v s, want %v", got, tt.timeout)
			}
			if got := permissions(t, made, "WorkerFunction"); got != nil {
				t.Errorf("WorkerFunction may be invoked by %q", got)
			}
		})
	}
}

// permissions say who may invoke a function, in order.
func permissions(t *testing.T, made map[string]resource, function string) (lines []string) {
	t.Helper()
	for _, r := range made {
		if r.Type != "AWS::Lambda::Permission" || r.Properties["FunctionName"] != "${"+function+".Arn}" {
			continue
		}
		p := maps.Clone(r.Properties)
		line := text(p["Principal"]) + " " + text(p["Action"])
		for _, name := range []string{"FunctionUrlAuthType", "InvokedViaFunctionUrl"} {
			if p[name] != nil {
				line += " if " + name + " is " + text(p[name])
			}
		}
		if p["SourceArn"] != nil {
			line += " from " + text(p["SourceArn"])
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// asks says what the door of a function asks of callers: its URL, the routes of the HTTP API
// that lead to it but those that everybody needs, or the path of the REST API.
func asks(t *testing.T, made map[string]resource, function, url, path string) string {
	t.Helper()
	var found []string
	if u := made[url].Properties; u != nil {
		if u["TargetFunctionArn"] != "${"+function+".Arn}" {
			t.Errorf("%s leads to %v", url, u["TargetFunctionArn"])
		}
		found = append(found, text(u["AuthType"])+" "+text(u["InvokeMode"]))
	}
	for name, r := range made {
		switch r.Type {
		case "AWS::ApiGatewayV2::Route":
			integration := strings.TrimSuffix(strings.TrimPrefix(text(r.Properties["Target"]), "integrations/${"), "}")
			if made[integration].Properties["IntegrationUri"] != "${"+function+".Arn}" {
				continue
			}
			key, auth := text(r.Properties["RouteKey"]), text(r.Properties["AuthorizationType"])
			if strings.HasPrefix(key, "OPTIONS ") || strings.HasPrefix(key, "GET /.well-known/") {
				if auth != "NONE" {
					t.Errorf("%s asks for %s", name, auth)
				}
				continue
			}
			if r.Properties["AuthorizerId"] != nil {
				auth += " " + text(r.Properties["AuthorizerId"])
			}
			found = append(found, auth)
		case "AWS::ApiGateway::RestApi":
			methods := r.Properties["Body"].(map[string]any)["paths"].(map[string]any)[path].(map[string]any)
			if len(methods) != 1 {
				t.Errorf("%s has %d methods", path, len(methods))
			}
			method := methods["x-amazon-apigateway-any-method"].(map[string]any)
			integration := method["x-amazon-apigateway-integration"].(map[string]any)
			want := "arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/${" + function + ".Arn}/invocations"
			if integration["responseTransferMode"] == "STREAM" {
				want = "arn:aws:apigateway:eu-central-1:lambda:path/2021-11-15/functions/${" + function + ".Arn}/response-streaming-invocations"
			}
			if integration["uri"] != want || integration["type"] != "aws_proxy" {
				t.Errorf("%s leads to %v, want %s", path, integration, want)
			}
			found = append(found, text(method["x-amazon-apigateway-auth"].(map[string]any)["type"])+" "+text(integration["responseTransferMode"])+" "+text(integration["timeoutInMillis"]))
		}
	}
	if len(found) != 1 {
		t.Errorf("%s is behind %d doors: %q", function, len(found), found)
	}
	return strings.Join(found, ", ")
}

// settings are the environment variables of a function.
func settings(made map[string]resource, function string) map[string]string {
	set := map[string]string{}
	for name, v := range made[function].Properties["Environment"].(map[string]any)["Variables"].(map[string]any) {
		set[name] = text(v)
	}
	return set
}

// What the rules refuse would deploy and then not work.
func TestRules(t *testing.T) {
	withJWT := append([]string{"Auth=jwt"}, issuer...)
	tests := []struct {
		parameters []string
		want       []string
	}{
		{[]string{"Auth=apikey"}, nil},
		{withJWT, []string{"Auth=jwt behind function-url and rest-api needs PublicUrl"}},
		{append([]string{"FrontDoor=rest-api"}, withJWT...), []string{"Auth=jwt behind function-url and rest-api needs PublicUrl"}},
		{append([]string{"FrontDoor=http-api"}, withJWT...), nil},
		{append([]string{public[0]}, withJWT...), nil},
		{append([]string{public[0], "FilesBucket=docs"}, withJWT...), []string{"Auth=jwt with FilesBucket and PublicUrl needs FilesPublicUrl"}},
		{[]string{"Auth=jwt", "FrontDoor=http-api"}, []string{"Auth=jwt needs JwtIssuer", "Auth=jwt needs JwtJwksUrl"}},
		{[]string{"Auth=gateway-jwt"}, []string{"Auth=gateway-jwt needs FrontDoor=http-api", "Auth=gateway-jwt needs JwtIssuer"}},
		{append([]string{"Auth=gateway-jwt", "FrontDoor=http-api"}, issuer...), []string{"the HTTP API finds the issuer's keys by itself; JwtJwksUrl is for Auth=jwt"}},
		{[]string{"Auth=none", "FrontDoor=rest-api", "Mctp=on"}, []string{"Mctp=on behind rest-api needs PublicUrl"}},
		{[]string{"Auth=none", "FrontDoor=rest-api", "Mctp=on", public[0]}, nil},
		{[]string{"Auth=none", "Mctp=on"}, nil},
		{[]string{"Auth=none", issuer[0]}, []string{"JwtIssuer, JwtAudience and JwtJwksUrl are for Auth=jwt and Auth=gateway-jwt"}},
	}
	tpl := translated(t)
	for _, tt := range tests {
		t.Run(strings.Join(tt.parameters, " "), func(t *testing.T) {
			if got := tpl.with(t, tt.parameters...).refusals(); !slices.Equal(got, tt.want) {
				t.Errorf("refused is %q, want %q", got, tt.want)
			}
		})
	}
}

// The program takes the settings that the template gives each function, for whatever the rules
// let pass.
func TestSettings(t *testing.T) {
	program := fixture.BuildProgram(t, "github.com/thaw-mcp/thaw/functions/server", "-tags=lambda.norpc")
	_, line, err := auth.NewAPIKey("robot", nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(t.TempDir(), "apikeys")
	if err := os.WriteFile(keys, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// What AWS puts where the template names another resource.
	aws := strings.NewReplacer("${TaskTable}", "thaw-TaskTable-1", "${TaskQueue}", "https://sqs.eu-central-1.amazonaws.com/123456789012/thaw-TaskQueue-1",
		"${StateKey.Arn}", "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab", "${HttpApi}", "a1b2c3d4e5", "/var/task/apikeys", keys)
	tpl := translated(t)
	checked := 0
	for _, door := range []string{"function-url", "http-api", "rest-api"} {
		for _, auth := range []string{"none", "jwt", "apikey", "iam", "gateway-jwt"} {
			for _, more := range [][]string{nil, public, append([]string{"Mctp=on"}, public...), {"FilesBucket=docs", "EnvironmentsBucket=envs", "Streaming=off", "AllowedOrigins=https://app.example.com",
				"StateKeyArn=arn:aws:kms:eu-central-1:123456789012:key/first", "OtherStateKeyArn=arn:aws:kms:eu-central-1:123456789012:key/second"}} {
				parameters := slices.Concat([]string{"FrontDoor=" + door, "Auth=" + auth}, more)
				switch auth {
				case "jwt":
					parameters = append(parameters, issuer...)
				case "gateway-jwt":
					parameters = append(parameters, issuer[0])
				}
				d := tpl.with(t, parameters...)
				if len(d.refusals()) > 0 {
					continue
				}
				made := d.all()
				for name, r := range made {
					if r.Type != "AWS::Lambda::Function" {
						continue
					}
					cmd := exec.CommandContext(t.Context(), program, "check")
					cmd.Dir = t.TempDir()
					cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=127.0.0.1:1", "AWS_LAMBDA_FUNCTION_NAME=" + name, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret"}
					for name, value := range settings(made, name) {
						cmd.Env = append(cmd.Env, name+"="+aws.Replace(value))
					}
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("%s of %q: %v\n%s", name, parameters, err, out)
					}
					checked++
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d functions were checked", checked)
	}
}
