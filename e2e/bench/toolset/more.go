package toolset

import (
	"context"
	"strconv"
)

// WeatherIn asks for a forecast.
type WeatherIn[K any] struct {
	Place Place[K] `json:"place" jsonschema:"where"`
	Days  int      `json:"days,omitempty" jsonschema:"how many days" default:"3" minimum:"1" maximum:"14"`
	Units string   `json:"units,omitempty" jsonschema:"of temperatures" enum:"celsius,fahrenheit" default:"celsius"`
}

// Place is a point on the map.
type Place[K any] struct {
	Name      string  `json:"name,omitempty"`
	Latitude  float64 `json:"latitude" minimum:"-90" maximum:"90"`
	Longitude float64 `json:"longitude" minimum:"-180" maximum:"180"`
}

// WeatherOut is a forecast.
type WeatherOut[K any] struct {
	Days []WeatherDay[K] `json:"days"`
}

// WeatherDay is one day of it.
type WeatherDay[K any] struct {
	Date string  `json:"date"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Text string  `json:"text"`
}

// Weather answers with one day.
func Weather[K any](_ context.Context, in WeatherIn[K]) (WeatherOut[K], error) {
	return WeatherOut[K]{[]WeatherDay[K]{{"2026-08-01", 12.5, 24, in.Place.Name}}}, nil
}

// JobIn schedules a job.
type JobIn[K any] struct {
	Name    string            `json:"name" pattern:"^[a-z][a-z0-9-]*$" maxLength:"63"`
	Cron    string            `json:"cron" jsonschema:"five fields, UTC"`
	Image   string            `json:"image" jsonschema:"container image"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty" jsonschema:"variables of the environment"`
	Retries int               `json:"retries,omitempty" default:"3" minimum:"0" maximum:"10"`
	Limits  JobLimits[K]      `json:"limits,omitzero"`
}

// JobLimits bound a job.
type JobLimits[K any] struct {
	CPU     float64 `json:"cpu,omitempty" minimum:"0.1" maximum:"16"`
	Memory  int     `json:"memory,omitempty" jsonschema:"MiB" minimum:"64" maximum:"65536"`
	Seconds int     `json:"seconds,omitempty" minimum:"1" maximum:"86400"`
}

// JobOut is the job as planned.
type JobOut[K any] struct {
	ID   string `json:"id"`
	Next string `json:"next" format:"date-time"`
}

// Job answers with a plan.
func Job[K any](_ context.Context, in JobIn[K]) (JobOut[K], error) {
	return JobOut[K]{in.Name, "2026-08-01T00:00:00Z"}, nil
}

// UserIn looks a user up.
type UserIn[K any] struct {
	Email  string   `json:"email,omitempty" format:"email"`
	ID     string   `json:"id,omitempty" format:"uuid"`
	Fields []string `json:"fields,omitempty" jsonschema:"what to return; all if empty"`
}

// UserOut is a user.
type UserOut[K any] struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Email   string          `json:"email"`
	Active  bool            `json:"active"`
	Address *UserAddress[K] `json:"address,omitempty"`
	Groups  []string        `json:"groups"`
}

// UserAddress is where a user lives.
type UserAddress[K any] struct {
	Street  string `json:"street"`
	City    string `json:"city"`
	Postal  string `json:"postal"`
	Country string `json:"country"`
}

// User answers with one user.
func User[K any](_ context.Context, in UserIn[K]) (UserOut[K], error) {
	return UserOut[K]{ID: in.ID, Name: "Ada", Email: in.Email, Active: true, Groups: in.Fields}, nil
}

// OrderIn places an order.
type OrderIn[K any] struct {
	Customer string         `json:"customer" pattern:"^C[0-9]{6}$"`
	Items    []OrderItem[K] `json:"items" minItems:"1" maxItems:"100"`
	Shipping OrderAddr[K]   `json:"shipping"`
	Express  bool           `json:"express,omitempty"`
	Note     *string        `json:"note,omitempty" maxLength:"1000"`
}

// OrderItem is a position of an order.
type OrderItem[K any] struct {
	Article string `json:"article"`
	Amount  int    `json:"amount" minimum:"1" maximum:"999"`
}

// OrderAddr is where an order goes.
type OrderAddr[K any] struct {
	Name    string `json:"name"`
	Street  string `json:"street"`
	City    string `json:"city"`
	Postal  string `json:"postal" pattern:"^[0-9]{4,5}$"`
	Country string `json:"country" minLength:"2" maxLength:"2"`
}

// OrderOut is the order as booked.
type OrderOut[K any] struct {
	Number string `json:"number"`
	Items  int    `json:"items"`
	Cents  int64  `json:"cents"`
}

// Order answers with a number.
func Order[K any](_ context.Context, in OrderIn[K]) (OrderOut[K], error) {
	return OrderOut[K]{in.Customer + "-1", len(in.Items), 4200}, nil
}

// ConvertIn converts an amount of money.
type ConvertIn[K any] struct {
	Amount float64 `json:"amount" minimum:"0"`
	From   string  `json:"from" enum:"EUR,USD,GBP,CHF,JPY"`
	To     string  `json:"to" enum:"EUR,USD,GBP,CHF,JPY"`
	Day    string  `json:"day,omitempty" format:"date"`
}

// ConvertOut is the amount converted.
type ConvertOut[K any] struct {
	Amount float64 `json:"amount"`
	Text   string  `json:"text"`
}

// Convert answers one to one.
func Convert[K any](_ context.Context, in ConvertIn[K]) (ConvertOut[K], error) {
	return ConvertOut[K]{in.Amount, strconv.FormatFloat(in.Amount, 'f', 2, 64) + " " + in.To}, nil
}
