package mctp

import (
	"encoding/json"
	"net/url"
	"strconv"
)

// API is what an OpenAPI document says of a server.
type API struct {
	Title, Version, Description string
	Server                      string // URL without a path below it
	Bearer                      bool   // callers send a token
	Tools                       []Tool
}

// Tool is a tool in an OpenAPI document.
type Tool struct {
	Name, Title, Description string
	Scopes                   []string
	Input, Output            json.RawMessage // JSON Schemas; Output may be nil
}

type object = map[string]any

// AppendJSON appends the document, OpenAPI 3.1. Equal APIs give equal bytes.
func (a API) AppendJSON(b []byte) ([]byte, error) {
	schemas := object{
		"DiscoveryResponse": object{"type": "object", "required": []string{"endpoints"}, "properties": object{
			"endpoints": object{"type": "object", "additionalProperties": object{"type": "string", "format": "uri"}}}},
		"TaskResponse": object{"type": "object", "required": []string{"id", "status", "createdAt"}, "properties": object{
			"id":        object{"type": "string", "format": "uuid"},
			"status":    object{"type": "string", "enum": []Status{Pending, InProgress, Completed, Failed}},
			"createdAt": object{"type": "string", "format": "date-time"}}},
		"TaskError": object{"type": "object", "required": []string{"error"}, "properties": object{
			"error": object{"type": "object", "required": []string{"reason", "message"}, "properties": object{
				"reason": object{"type": "string"}, "message": object{"type": "string"}}}}},
		"Problem": object{"type": "object", "required": []string{"title", "status", "detail", "reason"}, "properties": object{
			"title": object{"type": "string"}, "status": object{"type": "integer"}, "detail": object{"type": "string"}, "reason": object{"type": "string"},
			"errors": object{"type": "array", "items": object{"type": "object", "properties": object{
				"pointer": object{"type": "string"}, "detail": object{"type": "string"}}}}}},
	}
	paths := object{
		"/" + PathDiscovery: object{"get": operation("discovery", "Names and addresses of the tools", object{
			"200": answer("The tools that the caller may use", reference("DiscoveryResponse"), nil), "default": refusal()})},
	}
	for i, t := range a.Tools {
		n := strconv.Itoa(i)
		schemas["Input"+n] = identified(t.Input, a.Server, t.Name, "input")
		result := any(object{"type": "object"})
		if kindObject(t.Output) {
			schemas["Output"+n] = identified(t.Output, a.Server, t.Name, "output")
			result = reference("Output" + n)
		}
		path := "/" + url.PathEscape(t.Name)
		create := operation("create_"+t.Name, t.Title, object{
			"201":     answer("The task", reference("TaskResponse"), created),
			"default": refusal(),
		})
		create["description"] = t.Description
		create["parameters"] = []any{object{"name": HeaderIdempotencyKey, "in": "header", "schema": object{"type": "string", "maxLength": MaxIdempotencyKey},
			"description": "The same key with the same body is the same task."}}
		create["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": object{
			"type": "object", "properties": object{"parameters": reference("Input" + n)}}}}}
		if a.Bearer {
			scopes := t.Scopes
			if scopes == nil {
				scopes = []string{}
			}
			create["security"] = []any{object{"bearer": scopes}}
		}
		paths[path] = object{"post": create}
		id := []any{object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string"}}}
		state := operation("status_"+t.Name, "How the task stands", object{"200": answer("The task", reference("TaskResponse"), status), "default": refusal()})
		head := operation("head_"+t.Name, "How the task stands, in headers", object{"200": answer("The task", nil, status), "default": object{"description": "A refusal, by its status alone"}})
		paths[path+"/{id}"] = object{"parameters": id, "get": state, "head": head}
		outcome := object{"type": "object", "required": []string{"task", "result"}, "properties": object{
			"task": reference("TaskResponse"), "result": object{"anyOf": []any{result, reference("TaskError")}}}}
		paths[path+"/{id}/result"] = object{"parameters": id, "get": operation("result_"+t.Name, "The result of a task that has ended", object{
			"200": answer("The result", outcome, status),
			"409": answer("The task has not ended", nil, status), "default": refusal()})}
	}
	doc := object{
		"openapi":    "3.1.0",
		"info":       object{"title": a.Title, "version": a.Version, "description": a.Description},
		"servers":    []any{object{"url": a.Server}},
		"paths":      paths,
		"components": object{"schemas": schemas},
	}
	if a.Bearer {
		doc["components"].(object)["securitySchemes"] = object{"bearer": object{"type": "http", "scheme": "bearer"}}
		doc["security"] = []any{object{"bearer": []string{}}}
	}
	text, err := json.Marshal(doc)
	return append(b, text...), err
}

var (
	status = object{
		HeaderStatus:        object{"schema": object{"type": "string", "enum": []Status{Pending, InProgress, Completed, Failed}}, "required": true},
		HeaderInputRequired: object{"schema": object{"const": "true"}, "description": "The task waits for an answer, which is given over MCP."},
		"Retry-After":       object{"schema": object{"type": "integer"}, "description": "Seconds to the next look, of a task that has not ended."},
		"Last-Modified":     object{"schema": object{"type": "string"}},
	}
	created = object{
		HeaderStatus: status[HeaderStatus],
		"Location":   object{"schema": object{"type": "string", "format": "uri"}, "required": true},
	}
)

func operation(id, summary string, responses object) object {
	o := object{"operationId": id, "responses": responses}
	if summary != "" {
		o["summary"] = summary
	}
	return o
}

func reference(schema string) object { return object{"$ref": "#/components/schemas/" + schema} }

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

func refusal() object {
	return object{"description": "What is wrong with the request",
		"content": object{ContentTypeProblem: object{"schema": reference("Problem")}}}
}

// identified gives a schema an id of its own, so that what it refers to inside itself is not
// looked for in the document around it. One that has an id keeps it.
func identified(schema json.RawMessage, server, tool, what string) any {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil || members["$id"] != nil {
		return schema
	}
	id, _ := json.Marshal(server + "/" + PathOpenAPI + "/" + url.PathEscape(tool) + "/" + what)
	members["$id"] = id
	return members
}

func kindObject(schema json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(schema, &members) == nil && members != nil
}
