package mctp

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// API is what an OpenAPI document says of a server.
type API struct {
	Title, Version string
	Bearer         bool // callers send a token
	Tools          []Tool
}

// Tool is a tool in an OpenAPI document.
type Tool struct {
	Name, Title, Description string
	Scopes                   []string
	Input, Output            json.RawMessage // JSON Schemas; Output may be nil
}

type object = map[string]any

// Document is an OpenAPI document that does not say yet where its server is.
type Document []byte

// At appends the document of a server whose paths stand below an URL without a slash at its end.
func (d Document) At(b []byte, server string) []byte {
	b = strictjson.AppendString(append(b, `{"servers":[{"url":`...), server)
	return append(append(b, "}],"...), d[1:]...)
}

// Document is the API as OpenAPI 3.1. Equal APIs give equal bytes. An error says that a schema is
// no JSON. It takes milliseconds.
func (a API) Document() (Document, error) {
	schemas := object{
		"DiscoveryResponse": objectOf(object{"endpoints": object{"type": "object", "additionalProperties": object{"type": "string", "format": "uri"}}}, "endpoints"),
		"TaskResponse": objectOf(object{
			"id":        object{"type": "string", "format": "uuid"},
			"status":    object{"type": "string", "enum": statuses},
			"createdAt": object{"type": "string", "format": "date-time"},
		}, "id", "status", "createdAt"),
		"TaskError": objectOf(object{
			"error": objectOf(object{"reason": text, "message": text, "content": object{"type": "array"}}, "reason", "message"),
		}, "error"),
		"Problem": objectOf(object{
			"title": text, "status": object{"type": "integer"}, "detail": text, "reason": text,
			"errors": object{"type": "array", "items": objectOf(object{"pointer": text, "detail": text}, "pointer", "detail")},
		}, "title", "status", "detail", "reason"),
	}
	paths := object{
		"/" + PathDiscovery: object{"get": operation("discovery", "Names and addresses of the tools", object{
			"200": answer("The tools that the caller may use", reference("DiscoveryResponse"), nil), "304": object{"description": "Not modified"}, "default": refusal(nil),
		})},
	}
	id := []any{object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string", "format": "uuid"}}}
	for _, t := range a.Tools {
		input, output, err := t.addSchemas(schemas)
		if err != nil {
			return nil, err
		}
		path := "/" + t.Name
		paths[path] = object{"post": t.create(a.Bearer, input)}
		paths[path+"/{id}"] = object{
			"parameters": id,
			"get":        operation("status_"+t.Name, "How the task stands", object{"200": answer("The task", reference("TaskResponse"), taskHeaders), "default": refusal(nil)}),
			"head": operation("head_"+t.Name, "How the task stands, in headers",
				object{"200": answer("The task", nil, taskHeaders), "default": object{"description": "A refusal, by its status alone"}}),
		}
		outcome := objectOf(object{"task": reference("TaskResponse"), "result": object{"anyOf": []any{output, reference("TaskError")}}}, "task", "result")
		paths[path+"/{id}/result"] = object{"parameters": id, "get": operation("result_"+t.Name, "The result of a task that has ended", object{
			"200": answer("The result", outcome, taskHeaders), strconv.Itoa(http.StatusConflict): refusal(taskHeaders), "default": refusal(nil),
		})}
	}
	doc := object{
		"openapi": "3.1.0",
		"info":    object{"title": a.Title, "version": a.Version},
		"paths":   paths,
	}
	components := object{"schemas": schemas}
	if a.Bearer {
		components["securitySchemes"] = object{"bearer": object{"type": "http", "scheme": "bearer"}}
		doc["security"] = []any{object{"bearer": []string{}}}
	}
	doc["components"] = components
	return json.Marshal(doc)
}

// addSchemas puts the tool's schemas among the components, by names that no other tool has, and
// is those of its parameters and of its result.
func (t *Tool) addSchemas(components object) (input, output object, err error) {
	name := t.Name + ".input"
	if components[name], err = embedded(t.Input, name); err != nil {
		return nil, nil, err
	}
	input = reference(name)
	if t.Output == nil {
		return input, object{"type": "object"}, nil
	}
	name = t.Name + ".output"
	schema, err := embedded(t.Output, name)
	if err != nil {
		return nil, nil, err
	}
	components[name] = schema
	if members, ok := schema.(object); ok && members["type"] == "object" {
		return input, reference(name), nil
	}
	// What may be no object is a member of the result, if it is none: see Result.
	return input, object{"anyOf": []any{
		object{"allOf": []any{object{"type": "object"}, reference(name)}},
		objectOf(object{"content": object{"type": "array"}, "structuredContent": reference(name)}, "content", "structuredContent"),
	}}, nil
}

func (t *Tool) create(bearer bool, input object) object {
	create := operation("create_"+t.Name, t.Title, object{"201": answer("The task", reference("TaskResponse"), createdHeaders), "default": refusal(nil)})
	if t.Description != "" {
		create["description"] = t.Description
	}
	create["parameters"] = []any{
		object{"name": HeaderIdempotencyKey, "in": "header", "schema": object{"type": "string", "minLength": 1, "maxLength": MaxIdempotencyKey},
			"description": "The same key with the same parameters is the same task."},
		object{"name": "Prefer", "in": "header", "schema": text, "description": "wait=SECONDS or respond-async: how long the answer may wait for the end of the task."},
	}
	create["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": object{
		"type": "object", "properties": object{"parameters": input}}}}}
	if bearer {
		create["security"] = []any{object{"bearer": append([]string{}, t.Scopes...)}}
	}
	return create
}

var (
	statuses = []Status{Pending, InProgress, Completed, Failed}
	text     = object{"type": "string"}

	taskHeaders = object{
		HeaderStatus:        object{"schema": object{"type": "string", "enum": statuses}, "required": true},
		HeaderInputRequired: object{"schema": object{"const": "true"}, "description": "The task waits for an answer, which is given over MCP."},
		"Retry-After":       object{"schema": object{"type": "integer"}, "description": "Seconds to the next look, of a task that has not ended."},
		"Last-Modified":     object{"schema": text},
	}
	createdHeaders = object{
		HeaderStatus: taskHeaders[HeaderStatus],
		"Location":   object{"schema": object{"type": "string", "format": "uri"}, "required": true},
	}
)

func objectOf(properties object, required ...string) object {
	return object{"type": "object", "required": required, "properties": properties}
}

func operation(id, summary string, responses object) object {
	o := object{"operationId": id, "responses": responses}
	if summary != "" {
		o["summary"] = summary
	}
	return o
}

func reference(schema string) object { return object{"$ref": componentsPath + schema} }

const componentsPath = "#/components/schemas/"

func answer(description string, schema, headers object) object {
	a := object{"description": description}
	if schema != nil {
		a["content"] = object{"application/json": object{"schema": schema}}
	}
	if headers != nil {
		a["headers"] = headers
	}
	return a
}

func refusal(headers object) object {
	a := object{"description": "What is wrong with the request", "content": object{ContentTypeProblem: object{"schema": reference("Problem")}}}
	if headers != nil {
		a["headers"] = headers
	}
	return a
}
