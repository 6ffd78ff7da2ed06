package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/dynamostore"
)

// fully is the template with whatever it can make behind a function URL.
func fully(t *testing.T) map[string]resource {
	t.Helper()
	return translated(t).with(t, "Auth=apikey", "FilesBucket=docs", "EnvironmentsBucket=envs", "LogRetentionDays=30", "AlarmTopicArn=arn:aws:sns:eu-central-1:123456789012:ops").all()
}

// What tasks stand on. Each value is one that the engine counts on.
func TestResources(t *testing.T) {
	made := fully(t)
	tests := []struct {
		name string
		want string // the properties that matter, as JSON
	}{
		{"TaskTable", `{"BillingMode":"PAY_PER_REQUEST","PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true},
			"TimeToLiveSpecification":{"AttributeName":"x","Enabled":true},"SSESpecification":{"SSEEnabled":true,"SSEType":"KMS","KMSMasterKeyId":"${TableKey.Arn}"}}`},
		{"TableKey", `{"EnableKeyRotation":true,"PendingWindowInDays":30}`},
		{"StateKey", `{"KeySpec":"HMAC_256","KeyUsage":"GENERATE_VERIFY_MAC","PendingWindowInDays":30}`},
		{"TaskQueue", `{"VisibilityTimeout":960,"MessageRetentionPeriod":1209600,"SqsManagedSseEnabled":true,
			"RedrivePolicy":{"deadLetterTargetArn":"${DeadLetterQueue.Arn}","maxReceiveCount":100}}`},
		{"DeadLetterQueue", `{"VisibilityTimeout":960,"MessageRetentionPeriod":1209600,"SqsManagedSseEnabled":true,"RedrivePolicy":null}`},
		{"WorkerFunctionTasks", `{"EventSourceArn":"${TaskQueue.Arn}","FunctionName":"${WorkerFunction}","BatchSize":1,"FunctionResponseTypes":["ReportBatchItemFailures"],
			"ScalingConfig":{"MaximumConcurrency":"50"},"MaximumBatchingWindowInSeconds":null,"Enabled":null}`},
		{"WorkerFunctionDeadLetters", `{"EventSourceArn":"${DeadLetterQueue.Arn}","FunctionName":"${WorkerFunction}","BatchSize":1,"FunctionResponseTypes":["ReportBatchItemFailures"]}`},
		{"WorkerFunctionSweep", `{"ScheduleExpression":"rate(1 minute)","FlexibleTimeWindow":{"Mode":"OFF"},"Name":null,"State":null,
			"Target":{"Arn":"${WorkerFunction.Arn}","RoleArn":"${WorkerFunctionSweepRole.Arn}","RetryPolicy":{"MaximumRetryAttempts":0}}}`},
		{"WorkerFunctionEventInvokeConfig", `{"FunctionName":"${WorkerFunction}","Qualifier":"$LATEST","MaximumRetryAttempts":0}`},
		{"WorkerFunction", `{"RecursiveLoop":"Allow","Timeout":900,"MemorySize":"512","Runtime":"provided.al2023","Architectures":["arm64"],"TracingConfig":{"Mode":"Active"},
			"LoggingConfig":{"LogGroup":"${WorkerLogs}","LogFormat":"JSON"}}`},
		{"ApiFunction", `{"RecursiveLoop":null,"MemorySize":"512","Runtime":"provided.al2023","Architectures":["arm64"],"TracingConfig":{"Mode":"Active"},
			"LoggingConfig":{"LogGroup":"${ApiLogs}","LogFormat":"JSON"}}`},
		{"FilesFunction", `{"Timeout":29,"MemorySize":256,"Runtime":"provided.al2023","Architectures":["arm64"],"TracingConfig":{"Mode":"Active"},
			"LoggingConfig":{"LogGroup":"${FilesLogs}","LogFormat":"JSON"}}`},
		{"ApiLogs", `{"RetentionInDays":"30"}`},
		{"WorkerLogs", `{"RetentionInDays":"30"}`},
		{"FilesLogs", `{"RetentionInDays":"30"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { has(t, made[tt.name].Properties, tt.want) })
	}
}

// has wants the members of a JSON object in properties; null says that one is not there.
func has(t *testing.T, properties map[string]any, object string) {
	t.Helper()
	var want map[string]any
	if err := json.Unmarshal([]byte(object), &want); err != nil {
		t.Fatal(err)
	}
	if properties == nil {
		t.Fatal("it is not made")
	}
	for name, w := range want {
		if got := properties[name]; !reflect.DeepEqual(got, w) {
			t.Errorf("%s is %v, want %v", name, got, w)
		}
	}
}

// The table is dynamostore's.
func TestTable(t *testing.T) {
	table, ttl := dynamostore.Table("t"), dynamostore.TimeToLive("t")
	want, err := json.Marshal(map[string]any{
		"AttributeDefinitions": table.AttributeDefinitions, "KeySchema": table.KeySchema, "BillingMode": table.BillingMode,
		"TimeToLiveSpecification": ttl.TimeToLiveSpecification,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fully(t)["TaskTable"].Properties
	has(t, got, string(want))
	indexes := got["GlobalSecondaryIndexes"].([]any)
	if len(indexes) != len(table.GlobalSecondaryIndexes) {
		t.Fatalf("%d indexes, want %d", len(indexes), len(table.GlobalSecondaryIndexes))
	}
	for i, index := range table.GlobalSecondaryIndexes {
		want, err := json.Marshal(map[string]any{
			"IndexName": index.IndexName, "KeySchema": index.KeySchema, "Projection": map[string]any{"ProjectionType": index.Projection.ProjectionType},
		})
		if err != nil {
			t.Fatal(err)
		}
		has(t, indexes[i].(map[string]any), string(want))
	}
}

// A key that another takes the place of stays while it has to open what it sealed.
func TestStateKeys(t *testing.T) {
	const own, first, second = "awskms:${StateKey.Arn}", "arn:aws:kms:eu-central-1:123456789012:key/first", "arn:aws:kms:eu-central-1:123456789012:key/second"
	tests := []struct {
		name       string
		parameters []string
		want       string
		made       bool
	}{
		{"the stack's", nil, own, true},
		{"another is announced", []string{"OtherStateKeyArn=" + first}, own + ",awskms:" + first, true},
		{"another seals", []string{"StateKeyArn=" + first, "OtherStateKeyArn=" + second}, "awskms:" + first + ",awskms:" + second, true},
		{"another alone", []string{"StateKeyArn=" + first}, "awskms:" + first, false},
	}
	tpl := translated(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			made := tpl.with(t, append(tt.parameters, "Auth=apikey")...).all()
			if got := settings(made, "ApiFunction")["THAW_STATE_KEY"]; got != tt.want {
				t.Errorf("THAW_STATE_KEY=%s, want %s", got, tt.want)
			}
			if _, got := made["StateKey"]; got != tt.made {
				t.Errorf("the stack has a key of its own: %v, want %v", got, tt.made)
			}
		})
	}
}

// What an operator has to know of has an alarm, and somebody is told.
func TestAlarms(t *testing.T) {
	want := map[string]string{
		"DeadLettersAlarm":     "AWS/SQS ApproximateNumberOfMessagesVisible of ${DeadLetterQueue.QueueName}, AWS/SQS ApproximateNumberOfMessagesNotVisible of ${DeadLetterQueue.QueueName} > 0",
		"TaskAgeAlarm":         "AWS/SQS ApproximateAgeOfOldestMessage of ${TaskQueue.QueueName} > 3600",
		"ApiErrorsAlarm":       "AWS/Lambda Errors of ${ApiFunction} > 0",
		"ApiThrottlesAlarm":    "AWS/Lambda Throttles of ${ApiFunction} > 0",
		"WorkerErrorsAlarm":    "AWS/Lambda Errors of ${WorkerFunction} > 0",
		"WorkerThrottlesAlarm": "AWS/Lambda Throttles of ${WorkerFunction} > 0",
		"WorkerRecursionAlarm": "AWS/Lambda RecursiveInvocationsDropped of ${WorkerFunction} > 0",
		"FilesErrorsAlarm":     "AWS/Lambda Errors of ${FilesFunction} > 0",
		"FilesThrottlesAlarm":  "AWS/Lambda Throttles of ${FilesFunction} > 0",
	}
	metric := func(m map[string]any) string {
		dimension := m["Dimensions"].([]any)[0].(map[string]any)
		return fmt.Sprint(m["Namespace"], " ", m["MetricName"], " of ", dimension["Value"])
	}
	got := map[string]string{}
	for name, r := range fully(t) {
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		p := r.Properties
		var metrics []string
		if parts, ok := p["Metrics"].([]any); ok {
			for _, part := range parts {
				if stat, ok := part.(map[string]any)["MetricStat"].(map[string]any); ok {
					metrics = append(metrics, metric(stat["Metric"].(map[string]any)))
				}
			}
		} else {
			metrics = []string{metric(p)}
		}
		if p["ComparisonOperator"] != "GreaterThanThreshold" || p["TreatMissingData"] != "notBreaching" || words(p["AlarmActions"]) != "arn:aws:sns:eu-central-1:123456789012:ops" {
			t.Errorf("%s: %v", name, p)
		}
		got[name] = strings.Join(metrics, ", ") + " > " + text(p["Threshold"])
	}
	if !maps.Equal(got, want) {
		t.Errorf("the alarms are\n%v\nwant\n%v", got, want)
	}
}

// Nobody deploys an open server by accident, and no parameter is left to be guessed.
func TestParameters(t *testing.T) {
	tpl := translated(t)
	var without []string
	for name, p := range tpl.Parameters {
		if p.Default == nil {
			without = append(without, name)
		}
		if len(p.Description) < 10 {
			t.Errorf("%s is described as %q", name, p.Description)
		}
		if p.AllowedPattern != "" && p.ConstraintDescription == "" {
			t.Errorf("%s would be refused with %s and no word", name, p.AllowedPattern)
		}
	}
	if !slices.Equal(without, []string{"Auth"}) {
		t.Errorf("%q have no default, want Auth alone", without)
	}
}

// The dashboard is JSON, whatever the functions are called.
func TestDashboard(t *testing.T) {
	var body struct {
		Widgets []struct{ Properties map[string]any }
	}
	if err := json.Unmarshal([]byte(text(fully(t)["Dashboard"].Properties["DashboardBody"])), &body); err != nil {
		t.Fatal(err)
	}
	if len(body.Widgets) != 6 {
		t.Errorf("%d widgets", len(body.Widgets))
	}
}
