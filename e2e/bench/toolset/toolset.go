// Package toolset holds the tools that every contender of the bench serves: plain typed
// functions that know no SDK. Each shape is generic over a type that appears in none of
// its fields, so that fifty tools are fifty distinct Go types: what a library caches by
// type then helps it no more than it would help fifty tools of fifty authors.
package toolset

import (
	"context"
	"fmt"
	"strings"
)

// Kinds to instantiate the shapes with.
type (
	A struct{}
	B struct{}
	C struct{}
	D struct{}
	E struct{}
)

// SearchIn is the tool that the calls are measured with.
type SearchIn[K any] struct {
	Query  string          `json:"query" jsonschema:"what to look for, in the user's own words" minLength:"1" maxLength:"500"`
	Limit  int             `json:"limit,omitempty" jsonschema:"how many documents at most" default:"10" minimum:"1" maximum:"50"`
	Tags   []string        `json:"tags,omitempty" jsonschema:"only documents that carry all of these" maxItems:"20"`
	Filter SearchFilter[K] `json:"filter,omitzero" jsonschema:"what else must hold of a document"`
}

// SearchFilter is the nested part of SearchIn.
type SearchFilter[K any] struct {
	Author    string `json:"author,omitempty" jsonschema:"user name of the author"`
	Language  string `json:"language,omitempty" jsonschema:"two-letter code" minLength:"2" maxLength:"2"`
	MinScore  int    `json:"minScore,omitempty" jsonschema:"lowest score, 0 to 100" minimum:"0" maximum:"100"`
	Published bool   `json:"published,omitempty" jsonschema:"leave out drafts"`
}

// SearchOut is a page of documents.
type SearchOut[K any] struct {
	Total int           `json:"total" jsonschema:"documents found in all"`
	Items []Document[K] `json:"items" jsonschema:"the best ones, best first"`
}

// Document is one hit.
type Document[K any] struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Author  string   `json:"author"`
	Score   int      `json:"score"`
	Tags    []string `json:"tags"`
	Excerpt string   `json:"excerpt"`
}

// Search answers from memory: what is measured is everything around it.
func Search[K any](_ context.Context, in SearchIn[K]) (SearchOut[K], error) {
	limit := in.Limit
	if limit == 0 {
		limit = 10
	}
	items := []Document[K]{
		{"doc-1041", "Moving stock between warehouses", in.Filter.Author, 97, in.Tags, "How " + in.Query + " is planned, booked and checked."},
		{"doc-0977", "Month-end inventory", in.Filter.Author, 91, in.Tags, "Counting rules, cut-off times and who signs."},
		{"doc-1203", "Returns \"without receipt\"", in.Filter.Author, 84, in.Tags, "When a return <30 days old is taken back & how."},
	}
	return SearchOut[K]{Total: 3, Items: items[:min(limit, len(items))]}, nil
}

// InvoicesIn lists invoices.
type InvoicesIn[K any] struct {
	Customer string `json:"customer" jsonschema:"customer number" pattern:"^C[0-9]{6}$"`
	Status   string `json:"status,omitempty" jsonschema:"only invoices in this state" enum:"open,paid,overdue,cancelled"`
	From     string `json:"from,omitempty" jsonschema:"first day" format:"date"`
	To       string `json:"to,omitempty" jsonschema:"last day" format:"date"`
	Page     int    `json:"page,omitempty" jsonschema:"page number, from 1" default:"1" minimum:"1"`
}

// InvoicesOut is a page of invoices.
type InvoicesOut[K any] struct {
	Invoices []Invoice[K] `json:"invoices"`
	NextPage *int         `json:"nextPage,omitempty"`
}

// Invoice is one of them.
type Invoice[K any] struct {
	Number   string           `json:"number"`
	Status   string           `json:"status"`
	Due      string           `json:"due"`
	Currency string           `json:"currency"`
	Lines    []InvoiceLine[K] `json:"lines"`
}

// InvoiceLine is a position of an invoice.
type InvoiceLine[K any] struct {
	Article string `json:"article"`
	Amount  int    `json:"amount"`
	Cents   int64  `json:"cents"`
}

// Invoices answers with one invoice.
func Invoices[K any](_ context.Context, in InvoicesIn[K]) (InvoicesOut[K], error) {
	return InvoicesOut[K]{Invoices: []Invoice[K]{{Number: "2026-0001", Status: "open", Due: "2026-08-31", Currency: "EUR",
		Lines: []InvoiceLine[K]{{"A-17 for " + in.Customer, 2, 1999}}}}}, nil
}

// TicketIn opens a support ticket.
type TicketIn[K any] struct {
	Title       string            `json:"title" jsonschema:"one line" minLength:"5" maxLength:"120"`
	Description string            `json:"description" jsonschema:"what happened, what was expected" maxLength:"10000"`
	Priority    string            `json:"priority,omitempty" jsonschema:"how urgent" enum:"low,normal,high,urgent" default:"normal"`
	Assignees   []string          `json:"assignees,omitempty" jsonschema:"user names" maxItems:"5"`
	Labels      map[string]string `json:"labels,omitempty" jsonschema:"free labels"`
	Contact     Contact[K]        `json:"contact" jsonschema:"whom to answer"`
}

// Contact is a person.
type Contact[K any] struct {
	Name  string `json:"name"`
	Email string `json:"email" format:"email"`
	Phone string `json:"phone,omitempty"`
}

// TicketOut is the ticket that was opened.
type TicketOut[K any] struct {
	ID  string `json:"id"`
	URL string `json:"url" format:"uri"`
}

// Ticket answers with a number.
func Ticket[K any](_ context.Context, in TicketIn[K]) (TicketOut[K], error) {
	id := fmt.Sprintf("T-%d", len(in.Title)+len(in.Description))
	return TicketOut[K]{id, "https://tickets.example/" + id}, nil
}

// QueryIn runs a report.
type QueryIn[K any] struct {
	Dataset string              `json:"dataset" jsonschema:"name of the data set"`
	Columns []string            `json:"columns" jsonschema:"columns to return" minItems:"1" maxItems:"40"`
	Where   []QueryCondition[K] `json:"where,omitempty" jsonschema:"conditions that all must hold" maxItems:"20"`
	OrderBy string              `json:"orderBy,omitempty" jsonschema:"column to sort by"`
	Rows    int                 `json:"rows,omitempty" jsonschema:"rows at most" default:"100" minimum:"1" maximum:"1000"`
}

// QueryCondition is one comparison.
type QueryCondition[K any] struct {
	Column   string `json:"column"`
	Operator string `json:"operator" enum:"eq,ne,lt,le,gt,ge,contains"`
	Value    string `json:"value"`
}

// QueryOut is a table.
type QueryOut[K any] struct {
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Query answers with one row.
func Query[K any](_ context.Context, in QueryIn[K]) (QueryOut[K], error) {
	return QueryOut[K]{in.Columns, [][]string{in.Columns}}, nil
}

// MessageIn sends a message.
type MessageIn[K any] struct {
	To          []string        `json:"to" jsonschema:"recipients" minItems:"1" maxItems:"50"`
	Subject     string          `json:"subject" jsonschema:"subject line" maxLength:"200"`
	Text        string          `json:"text" jsonschema:"plain text" maxLength:"100000"`
	Urgent      bool            `json:"urgent,omitempty" jsonschema:"mark it as urgent"`
	Attachments []Attachment[K] `json:"attachments,omitempty" maxItems:"10"`
}

// Attachment is a file by reference.
type Attachment[K any] struct {
	Name string `json:"name"`
	URL  string `json:"url" format:"uri"`
	Size int64  `json:"size" minimum:"0"`
}

// MessageOut says what was sent.
type MessageOut[K any] struct {
	ID   string `json:"id"`
	Sent int    `json:"sent"`
}

// Message answers with the number of recipients.
func Message[K any](_ context.Context, in MessageIn[K]) (MessageOut[K], error) {
	return MessageOut[K]{"m-" + strings.ToLower(in.Subject), len(in.To)}, nil
}
