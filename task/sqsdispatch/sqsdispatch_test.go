package sqsdispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/thaw-mcp/thaw/task"
)

const queueURL = "https://sqs.eu-west-1.amazonaws.com/111122223333/tasks"

// asked is what a client asks of the service.
type asked struct {
	QueueUrl, MessageBody, ReceiptHandle string
	DelaySeconds, VisibilityTimeout      int
	target, authorization                string
}

// service answers every request alike and tells what was asked.
func service(t *testing.T, status int, answer string) (cfg aws.Config, last *asked) {
	t.Helper()
	last = &asked{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = asked{target: r.Header.Get("X-Amz-Target"), authorization: r.Header.Get("Authorization")}
		if err := json.NewDecoder(r.Body).Decode(last); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: &s.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "hunter2", ""),
	}, last
}

func open(t *testing.T, cfg aws.Config) *Dispatcher {
	t.Helper()
	d, err := New(cfg, queueURL)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A message is delayed by whole seconds, never too few, at most 15 minutes (tasks rule 11).
func TestDispatch(t *testing.T) {
	cfg, last := service(t, 200, `{"MessageId":"m"}`)
	d := open(t, cfg)
	for _, c := range []struct {
		after time.Duration
		want  int
	}{
		{0, 0}, {-time.Second, 0}, {time.Millisecond, 1}, {time.Second, 1}, {90*time.Second + 1, 91}, {task.MaxDelay, 900}, {time.Hour, 900},
	} {
		if err := d.Dispatch(t.Context(), "id-1", c.after); err != nil {
			t.Fatal(err)
		}
		m, err := task.ParseMessage(last.MessageBody)
		if err != nil || m != (task.Message{ID: "id-1"}) || last.DelaySeconds != c.want || last.QueueUrl != queueURL || last.target != "AmazonSQS.SendMessage" {
			t.Errorf("after %v: %+v, %v; want a delay of %d", c.after, *last, err, c.want)
		}
		if !strings.Contains(last.authorization, "/eu-west-1/sqs/") {
			t.Errorf("signed for another region than the queue's: %s", last.authorization)
		}
	}
}

// TestFailures is what SQS can say, and whether trying again can help (tasks rule 7).
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		status int
		answer string
		never  bool
		says   string
	}{
		{400, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone"}`, true, "QueueDoesNotExist: gone"},
		{403, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"denied"}`, true, "AccessDeniedException: denied"},
		{400, `{"__type":"com.amazonaws.sqs#KmsAccessDenied","message":"denied"}`, true, "KmsAccessDenied"},
		{400, `{"__type":"com.amazonaws.sqs#InvalidAddress","message":"no queue"}`, true, "InvalidAddress"},
		{403, `{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"expired"}`, false, "ExpiredTokenException"},
		{400, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"slow down"}`, false, "RequestThrottled"},
		{500, `{"__type":"com.amazon.coral.service#InternalFailure","message":"oh"}`, false, "InternalFailure"},
		{400, `{"__type":"com.amazonaws.sqs#KmsDisabled","message":"off"}`, false, "KmsDisabled"},
		{502, `<html>`, false, "SendMessage"},
	} {
		cfg, _ := service(t, c.status, c.answer)
		err := open(t, cfg).Dispatch(t.Context(), "id-1", 0)
		if err == nil || errors.Is(err, task.ErrUndeliverable) != c.never || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", c.answer, err)
		}
	}
	cfg, _ := service(t, 200, "{}")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := open(t, cfg).Dispatch(ctx, "id-1", 0); err == nil || errors.Is(err, task.ErrUndeliverable) {
		t.Errorf("a request that ended: %v", err)
	}
}

// The name that a query answer has in its header is the one that the SDK reports.
func TestOldNames(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amzn-Query-Error", "AWS.SimpleQueueService.NonExistentQueue;Sender")
		w.WriteHeader(400)
		fmt.Fprint(w, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"gone"}`)
	}))
	defer s.Close()
	cfg, _ := service(t, 200, "{}")
	cfg.BaseEndpoint = &s.URL
	if err := open(t, cfg).Dispatch(t.Context(), "id-1", 0); !errors.Is(err, task.ErrUndeliverable) {
		t.Errorf("%v", err)
	}
}

func TestURLs(t *testing.T) {
	for _, c := range []struct{ url, region, want string }{
		{queueURL, "eu-west-1", ""},
		{"https://sqs.cn-north-1.amazonaws.com.cn/111122223333/tasks", "cn-north-1", ""},
		{"http://127.0.0.1:4566/000000000000/tasks", "", ""},
		{"https://vpce-1.sqs.example/111122223333/tasks", "", ""},
		{"", "", "no URL of an SQS queue"},
		{"tasks", "", "no URL"},
		{"arn:aws:sqs:eu-west-1:111122223333:tasks", "", "no URL"},
		{"https://sqs.eu-west-1.amazonaws.com/tasks", "", "no URL"},
		{"https://user:hunter2@sqs.eu-west-1.amazonaws.com/1/tasks", "", "no URL"},
		{"https://sqs.eu-west-1.amazonaws.com/1/tasks?x=y", "", "no URL"},
		{"ftp://sqs.eu-west-1.amazonaws.com/1/tasks", "", "no URL"},
		{"https://sqs.eu-west-1.amazonaws.com/1/tasks.fifo", "", "a FIFO queue"},
	} {
		region, err := parse(c.url)
		if region != c.region || (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: %q, %v", c.url, region, err)
		}
		if _, newErr := New(aws.Config{}, c.url); (newErr == nil) != (err == nil) {
			t.Errorf("%q: New says %v", c.url, newErr)
		}
	}
}

func TestScheme(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	s := Scheme()
	if d, err := s.Open(t.Context(), queueURL); s.Name != "sqs" || err != nil || d == nil {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := s.Open(t.Context(), "tasks"); err == nil {
		t.Error("no URL was taken")
	}
}

func TestVisibility(t *testing.T) {
	cfg, last := service(t, 200, "{}")
	v := NewVisibility(cfg)
	for _, c := range []struct {
		arn  string
		d    time.Duration
		url  string
		want int
	}{
		{"arn:aws:sqs:eu-west-1:111122223333:tasks", 70 * time.Second, queueURL, 70},
		{"arn:aws:sqs:eu-west-1:111122223333:tasks", 1500 * time.Millisecond, queueURL, 2},
		{"arn:aws:sqs:eu-west-1:111122223333:tasks", -time.Second, queueURL, 0},
		{"arn:aws-cn:sqs:cn-north-1:111122223333:tasks", 24 * time.Hour, "https://sqs.cn-north-1.amazonaws.com.cn/111122223333/tasks", 43200},
	} {
		if err := v.Change(t.Context(), c.arn, "receipt", c.d); err != nil || last.QueueUrl != c.url || last.VisibilityTimeout != c.want || last.ReceiptHandle != "receipt" {
			t.Errorf("%s, %v: %+v, %v", c.arn, c.d, *last, err)
		}
	}
	if !strings.Contains(last.authorization, "/cn-north-1/sqs/") {
		t.Errorf("signed for another region than the queue's: %s", last.authorization)
	}
	for _, arn := range []string{"", "tasks", "arn:aws:sns:eu-west-1:1:x", "arn:aws:sqs::1:x", "arn:aws:sqs:eu-west-1::x", "arn:aws:sqs:eu-west-1:1:"} {
		if err := v.Change(t.Context(), arn, "receipt", time.Second); err == nil || !strings.Contains(err.Error(), "no ARN of an SQS queue") {
			t.Errorf("%q: %v", arn, err)
		}
	}
	cfg, _ = service(t, 400, `{"__type":"com.amazonaws.sqs#MessageNotInflight","message":"late"}`)
	if err := NewVisibility(cfg).Change(t.Context(), "arn:aws:sqs:eu-west-1:1:x", "receipt", 0); err == nil || !strings.Contains(err.Error(), "MessageNotInflight") {
		t.Errorf("%v", err)
	}
	broken := &Visibility{load: func(context.Context) (aws.Config, error) { return aws.Config{}, errors.New("no region") }}
	if err := broken.Change(t.Context(), "arn:aws:sqs:eu-west-1:1:x", "receipt", 0); err == nil || !strings.Contains(err.Error(), "no region") {
		t.Errorf("%v", err)
	}
}
