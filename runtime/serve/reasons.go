package serve

// Reasons are the stable codes that errors carry in error.data.reason, and tool results
// in _meta under metaReason. docs/errors.md explains each to operators and clients; a test
// holds the two together. They never change their meaning.
const (
	reasonParseError           = "parse_error"            // the body is not JSON, is not UTF-8, repeats a member, or nests too deeply
	reasonInvalidRequest       = "invalid_request"        // JSON, but no JSON-RPC request or notification
	reasonUnsupportedMediaType = "unsupported_media_type" // Content-Type or Content-Encoding of the body
	reasonNotAcceptable        = "not_acceptable"         // the method answers an event stream, which Accept refuses
	reasonBodyTooLarge         = "body_too_large"         // the body is above its limit
	reasonHeadersTooLarge      = "headers_too_large"      // the headers are above their limit
	reasonIncompleteBody       = "incomplete_body"        // the body did not arrive whole in time
	reasonMethodNotAllowed     = "method_not_allowed"     // the endpoint takes POST
	reasonNotFound             = "not_found"              // no such path
	reasonForbiddenHost        = "forbidden_host"         // Host is not local on a loopback bind
	reasonForbiddenOrigin      = "forbidden_origin"       // Origin is not allowed
	reasonUnauthorized         = "unauthorized"           // no credential, or none that is valid here
	reasonInsufficientScope    = "insufficient_scope"     // the caller lacks a scope
	reasonAuthUnavailable      = "auth_unavailable"       // credentials cannot be judged at the moment
	reasonHeaderMismatch       = "header_mismatch"        // a mirrored header is missing, malformed or differs from the body
	reasonUnsupportedVersion   = "unsupported_version"    // the protocol version is not served
	reasonMissingCapability    = "missing_capability"     // the client did not declare what the request needs
	reasonUnknownMethod        = "unknown_method"         // no such method, or its capability is not offered
	reasonInvalidMeta          = "invalid_meta"           // a _meta field is missing or wrong
	reasonInvalidParams        = "invalid_params"         // params do not have the method's form
	reasonInvalidCursor        = "invalid_cursor"         // a cursor that this list did not give
	reasonUnknownTool          = "unknown_tool"           // no such tool
	reasonUnknownPrompt        = "unknown_prompt"         // no such prompt
	reasonUnknownResource      = "unknown_resource"       // no such resource
	reasonUnknownReference     = "unknown_reference"      // completion for what does not exist
	reasonInvalidArguments     = "invalid_arguments"      // arguments break the schema
	reasonRateLimited          = "rate_limited"           // the tool's own limit
	reasonStopping             = "stopping"               // the server ends before the handler did
	reasonTooManyStreams       = "too_many_streams"       // subscriptions/listen beyond the limit
	reasonTimeout              = "timeout"                // the handler did not end in time
	reasonInterrupted          = "interrupted"            // the client left, or the server stopped, when a once-only round had had an effect
	reasonHandlerError         = "handler_error"          // a prompt, resource or completion handler gave an error with a text of its own
	reasonHandlerFailed        = "handler_failed"         // the handler failed; the log has why
	reasonBrokenTool           = "broken_tool"            // the tool's schema, or its output, is wrong; the log has why
	reasonPanic                = "panic"                  // the handler panicked; the log has the stack
	reasonResponseTooLarge     = "response_too_large"     // the host cannot deliver so large an answer
	reasonRequestState         = "requestState"           // the state does not open for this request
	reasonInvalidAnswer        = "invalid_answer"         // an answer to a question has not its form
	reasonCannotAsk            = "cannot_ask"             // the server has no key to seal a state with; the log says so
	reasonKeyUnavailable       = "key_unavailable"        // the key service does not answer
	reasonKeyDenied            = "key_denied"             // the key service refuses; the log has why
	reasonStoreUnavailable     = "store_unavailable"      // the store does not answer
	reasonInProgress           = "in_progress"            // the same retry is being served
	reasonStateTooLarge        = "state_too_large"        // the call keeps more than its state can carry
	reasonTooManyRounds        = "too_many_rounds"        // the call asked too often
	reasonUnknownTask          = "unknown_task"           // no such task of this caller, or it has expired
	reasonNotFinished          = "not_finished"           // the task has no result yet (MCTP)
	reasonKeyReused            = "idempotency_key_reused" // an Idempotency-Key came with other parameters before (MCTP)
	reasonNoTasks              = "no_tasks"               // the tool needs tasks, and the server has none
	reasonStale                = "stale"                  // the task began under a revision that is gone
	reasonMisuse               = "misuse"                 // the handler misuses its call; the log has where
	reasonInternal             = "internal"               // a fault of the server itself; the log has why
)
