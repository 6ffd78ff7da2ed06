package mctp

import (
	"net/url"
	"strings"
)

// Route is what a path is about.
type Route struct {
	Kind Kind
	Tool string // of all but Discovery and OpenAPI
	ID   string // of a task: Status and Result
}

// Kind of a route.
type Kind uint8

// The routes.
const (
	Nowhere   Kind = iota
	Discovery      // /discovery
	OpenAPI        // /openapi.json
	Create         // /TOOL
	State          // /TOOL/ID
	Outcome        // /TOOL/ID/result
)

// Allow are the methods that a route has, as the header Allow names them.
func (k Kind) Allow() string {
	if k == Create {
		return "POST, OPTIONS"
	}
	return "GET, HEAD, OPTIONS"
}

// RouteOf tells what an escaped path is about. One slash at its end does not matter.
func RouteOf(path string) Route {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil || text == "" {
			return Route{}
		}
		parts[i] = text
	}
	switch {
	case len(parts) == 1 && parts[0] == PathDiscovery:
		return Route{Kind: Discovery}
	case len(parts) == 1 && parts[0] == PathOpenAPI:
		return Route{Kind: OpenAPI}
	case Reserved(parts[0]):
		return Route{}
	case len(parts) == 1:
		return Route{Kind: Create, Tool: parts[0]}
	case len(parts) == 2:
		return Route{State, parts[0], parts[1]}
	case len(parts) == 3 && parts[2] == "result":
		return Route{Outcome, parts[0], parts[1]}
	}
	return Route{}
}
