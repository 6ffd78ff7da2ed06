package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Each function may do what it does and no more: whatever a role is given beyond this, somebody
// has to write down here too.
func TestRoles(t *testing.T) {
	const (
		assume    = "assumed by lambda.amazonaws.com: sts:AssumeRole"
		traces    = "Traces: xray:PutTelemetryRecords xray:PutTraceSegments on *"
		tasks     = "Tasks: dynamodb:GetItem dynamodb:PutItem dynamodb:Query dynamodb:UpdateItem on ${TaskTable.Arn}"
		tableKey  = "TableKey: kms:Decrypt kms:DescribeKey kms:Encrypt kms:GenerateDataKey kms:ReEncryptFrom kms:ReEncryptTo on ${TableKey.Arn}" + ` if {"StringEquals":{"kms:ViaService":"dynamodb.eu-central-1.amazonaws.com"}}`
		seals     = `StateKey: kms:GenerateMac on %s if {"StringEquals":{"kms:MacAlgorithm":"HMAC_SHA_256"}}`
		objects   = "Environments: s3:DeleteObject s3:PutObject on arn:aws:s3:::envs/*"
		envList   = "EnvironmentList: s3:ListBucket on arn:aws:s3:::envs"
		firstKey  = "arn:aws:kms:eu-central-1:123456789012:key/first"
		secondKey = "arn:aws:kms:eu-central-1:123456789012:key/second"
	)
	logs := func(group string) string {
		return "Logs: logs:CreateLogStream logs:PutLogEvents on ${" + group + ".Arn}"
	}
	roles := func(key string, environments ...string) map[string][]string {
		return map[string][]string{
			"ApiRole": append([]string{assume, logs("ApiLogs"), traces, tasks, tableKey, fmt.Sprintf(seals, key),
				"Messages: sqs:SendMessage on ${TaskQueue.Arn}"}, environments...),
			"WorkerRole": append([]string{assume, logs("WorkerLogs"), traces, tasks, tableKey,
				"DueTasks: dynamodb:Query on ${TaskTable.Arn}/index/due",
				"Messages: sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage on ${DeadLetterQueue.Arn} ${TaskQueue.Arn}",
				"NextMessages: sqs:SendMessage on ${TaskQueue.Arn}"}, environments...),
			"WorkerFunctionSweepRole": {"assumed by scheduler.amazonaws.com: sts:AssumeRole", ": lambda:InvokeFunction on ${WorkerFunction.Arn}"},
		}
	}
	withFiles := roles(firstKey+" "+secondKey, objects, envList)
	withFiles["FilesRole"] = []string{assume, logs("FilesLogs"), traces,
		`Uses: dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on ${TaskTable.Arn} if {"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["U#*"]}}`,
		tableKey, fmt.Sprintf(seals, firstKey+" "+secondKey),
		"Files: s3:DeleteObject s3:GetObject on arn:aws:s3:::docs/*",
		"FileList: s3:ListBucket on arn:aws:s3:::docs"}
	tests := []struct {
		name       string
		parameters []string
		want       map[string][]string
	}{
		{"as it comes", nil, roles("${StateKey.Arn}")},
		{"everything", []string{"FilesBucket=docs", "EnvironmentsBucket=envs", "StateKeyArn=" + firstKey, "OtherStateKeyArn=" + secondKey}, withFiles},
	}
	tpl := translated(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := tpl.with(t, append(tt.parameters, "Auth=apikey")...)
			for name, r := range d.all() {
				if strings.HasPrefix(r.Type, "AWS::IAM::") {
					want, got := slices.Sorted(slices.Values(tt.want[name])), role(t, r)
					if !slices.Equal(got, want) {
						t.Errorf("%s may\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
					}
				}
			}
			functions := 0
			for name, r := range d.all() {
				if r.Type == "AWS::Lambda::Function" {
					functions++
					if want := "${" + strings.TrimSuffix(name, "Function") + "Role.Arn}"; r.Properties["Role"] != want {
						t.Errorf("%s has the role %v, want %s", name, r.Properties["Role"], want)
					}
				}
			}
			if want := len(tt.want) - 1; functions != want {
				t.Errorf("%d functions, want %d", functions, want)
			}
		})
	}
}

// role is what a role may do, a line for each statement, in order.
func role(t *testing.T, r resource) (lines []string) {
	t.Helper()
	for name := range r.Properties {
		if !slices.Contains([]string{"AssumeRolePolicyDocument", "Policies"}, name) {
			t.Errorf("a role has %s", name)
		}
	}
	lines = statements(t, r.Properties["AssumeRolePolicyDocument"])
	for _, p := range r.Properties["Policies"].([]any) {
		lines = append(lines, statements(t, p.(map[string]any)["PolicyDocument"])...)
	}
	slices.Sort(lines)
	return lines
}

func statements(t *testing.T, document any) (lines []string) {
	t.Helper()
	for _, s := range document.(map[string]any)["Statement"].([]any) {
		s := maps.Clone(s.(map[string]any))
		if s["Effect"] != "Allow" {
			t.Errorf("a statement has the effect %v", s["Effect"])
		}
		var line string
		if principal, ok := s["Principal"].(map[string]any); ok {
			line = "assumed by " + words(principal["Service"]) + ": " + words(s["Action"])
		} else {
			sid, _ := s["Sid"].(string)
			line = sid + ": " + words(s["Action"]) + " on " + words(s["Resource"])
		}
		if s["Condition"] != nil {
			condition, err := json.Marshal(s["Condition"])
			if err != nil {
				t.Fatal(err)
			}
			line += " if " + string(condition)
		}
		for _, known := range []string{"Effect", "Sid", "Principal", "Action", "Resource", "Condition"} {
			delete(s, known)
		}
		if len(s) > 0 {
			t.Errorf("a statement has %v too", s)
		}
		lines = append(lines, line)
	}
	return lines
}

// words are the entries of a list, or the one of none, in order.
func words(v any) string {
	list, ok := v.([]any)
	if !ok {
		return text(v)
	}
	var out []string
	for _, e := range list {
		out = append(out, text(e))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
