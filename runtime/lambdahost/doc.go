// Package lambdahost runs an http.Handler as an AWS Lambda function behind any of
// Lambda's HTTP front doors: an API Gateway REST API (payload 1.0), an API Gateway
// HTTP API (payload 2.0, or 1.0 where configured), a Function URL (payload 2.0) and
// an Application Load Balancer (single-value or multi-value headers). The kind is
// told from the shape of each event, never from configuration, so one function can
// stand behind several doors at once.
//
// [Host] is what a main names; [NewInvoker] gives the bare event function, without
// the runtime loop, for tests and simulators.
//
// # What the handler sees
//
// A request as net/http would deliver it: each header field exactly once per line
// that the event carries, canonical names, values without surrounding white space
// (spec H-26, M-07, M-22, M-24), Host taken out of the header map, and RequestURI,
// ContentLength and RemoteAddr set. RemoteAddr is the address that the front door
// saw, with port 0; it is empty behind a load balancer, whose event has no address
// but the one in X-Forwarded-For, which a caller can influence. A non-nil TLS says
// only that the caller's connection to the front door was encrypted.
//
// What the front door has verified of the caller (a JWT, Lambda or IAM authorizer)
// is in the request's context, see host.IdentityFrom. It comes from the event's
// request context, for each kind of door from where that door puts it, and never
// from a header. A load balancer says it in headers only, so behind one there is none.
//
// A named stage of an HTTP API is cut from the front of the path. Other prefixes,
// such as the base path of a custom domain, are the handler's business.
//
// # What the front door gets
//
// The whole response, once the handler has returned: nothing is streamed, so the
// ResponseWriter is no http.Flusher. With [StreamingVariable] on that holds for HTTP APIs and load
// balancers; behind a Function URL or a REST API the ResponseWriter is a Flusher, and the response
// streams from the first Flush on, or from its 1,048,577th byte. The door has to be set up for it
// (InvokeMode RESPONSE_STREAM, responseTransferMode STREAM), which no event tells.
//
// A response above the platform's size limit,
// measured as the platform measures it, is replaced by a small error; host.Fits
// lets a handler ask beforehand and answer better. The request's context ends a
// little before the invocation does, so that an answer can still be sent. What goes
// wrong outside the handler is answered with a JSON-RPC error without id, so that a
// client never meets an empty or HTML body (spec V-21).
//
// # Tasks
//
// A program that works on durable tasks ([host.App] has RunTask and Sweep) is sent three more
// events. The records of an SQS event each name a task; the answer lists those to be kept as
// batchItemFailures, which the event source mapping has to have ReportBatchItemFailures for:
// without it Lambda deletes them, and the sweep has to find their tasks. A scheduled event of
// EventBridge, or of its Scheduler, is a sweep. An asynchronous invocation with the message of
// a task has that task looked at once. In any other program they are unknown events. After a
// handler that does not end (host.Leaked) the invocation fails with a [LeakError] and the process
// ends.
package lambdahost
