package thaw_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/thaw-mcp/thaw"
)

// Types for tools of the size that servers have; K makes of each as many as are wanted.
type (
	ticketIn[K any] struct {
		Title       string            `json:"title" jsonschema:"one line" minLength:"5" maxLength:"120"`
		Description string            `json:"description" jsonschema:"what happened, what was expected" maxLength:"10000"`
		Priority    string            `json:"priority,omitempty" jsonschema:"how urgent" enum:"low,normal,high,urgent" default:"normal"`
		Assignees   []string          `json:"assignees,omitempty" jsonschema:"user names" maxItems:"5"`
		Labels      map[string]string `json:"labels,omitempty" jsonschema:"free labels"`
		Contact     ticketContact[K]  `json:"contact" jsonschema:"whom to answer"`
	}
	ticketContact[K any] struct {
		Name  string `json:"name"`
		Email string `json:"email" format:"email"`
	}
	ticketOut[K any] struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	}

	searchIn[K any] struct {
		Query string `json:"query" jsonschema:"what to look for" minLength:"1" maxLength:"200"`
		Limit int    `json:"limit" jsonschema:"how many results at most" default:"10" minimum:"1" maximum:"50"`
		Sort  string `json:"sort,omitempty" enum:"relevance,date"`
	}
	searchOut[K any] struct {
		Total int            `json:"total"`
		Hits  []searchHit[K] `json:"hits"`
	}
	searchHit[K any] struct {
		Title string  `json:"title"`
		Score float64 `json:"score,omitempty"`
	}

	readIn[K any] struct {
		Path   string `json:"path" jsonschema:"of the file, from the root of the project"`
		Offset int    `json:"offset,omitempty" jsonschema:"first line" minimum:"0"`
		Lines  int    `json:"lines,omitempty" jsonschema:"how many lines" default:"200" minimum:"1" maximum:"2000"`
	}

	convertIn[K any] struct {
		Amount float64 `json:"amount" minimum:"0"`
		From   string  `json:"from" jsonschema:"ISO 4217" pattern:"^[A-Z]{3}$"`
		To     string  `json:"to" jsonschema:"ISO 4217" pattern:"^[A-Z]{3}$"`
	}
	convertOut[K any] struct {
		Amount float64 `json:"amount"`
		Rate   float64 `json:"rate"`
	}

	placeIn[K any] struct {
		Region    string  `json:"region" header:"Region"`
		Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90"`
		Longitude float64 `json:"longitude" minimum:"-180" maximum:"180"`
	}
	placeOut[K any] struct {
		Days []struct {
			Date      string `json:"date"`
			Low, High float64
		} `json:"days"`
	}
)

func answer[In, Out any](context.Context, In) (out Out, err error) { return out, nil }

func fiveTools[K any](suffix string) []*thaw.Tool {
	return []*thaw.Tool{
		thaw.NewTool("ticket"+suffix, "Open a ticket.", answer[ticketIn[K], ticketOut[K]], nil),
		thaw.NewTool("search"+suffix, "Search the documents.", answer[searchIn[K], searchOut[K]], nil),
		thaw.NewTool("read"+suffix, "Read a file.", answer[readIn[K], string], nil),
		thaw.NewTool("convert"+suffix, "Convert money.", answer[convertIn[K], convertOut[K]], nil),
		thaw.NewTool("weather"+suffix, "Forecast for a place.", answer[placeIn[K], placeOut[K]], nil),
	}
}

// Every cold start registers all tools of a server: fifty here, of types of their own.
func BenchmarkRegister(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var tools []*thaw.Tool
		for i, five := range []func(string) []*thaw.Tool{
			fiveTools[bool], fiveTools[int8], fiveTools[int16], fiveTools[int32], fiveTools[int64],
			fiveTools[uint8], fiveTools[uint16], fiveTools[uint32], fiveTools[uint64], fiveTools[string],
		} {
			tools = append(tools, five(fmt.Sprint(i))...)
		}
		if len(tools) != 50 {
			b.Fatal(len(tools))
		}
	}
}
