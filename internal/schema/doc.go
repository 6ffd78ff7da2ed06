// Package schema turns Go types into JSON Schema 2020-12 and a validator, both from one
// tree so that they agree, and hand-written schemas into a validator.
//
// # Types
//
// The schema of a type says what strictjson.Unmarshal reads into it or, with
// Options.Output, what strictjson.Marshal writes of it:
//
//   - struct: an object without additional properties, the properties in field order.
//     Names, embedding, "-", omitempty, omitzero and string are those of encoding/json.
//     A property is required unless it has omitempty, omitzero or a default, is a
//     pointer, or comes through an embedded pointer; for output only omitempty,
//     omitzero and embedded pointers make it optional.
//   - pointer: the same, or null.
//   - integers: the range of the Go type holds; ranges below 64 bits and the zero of
//     unsigned types are in the schema. 3.0 and 1e2 are integers.
//   - float32, float64, json.Number: number; a float has to be finite.
//   - time.Time: string of format date-time. time.Duration: integer, nanoseconds.
//   - []byte: string, base64. [N]byte: array of N integers.
//   - map: an object; keys are strings, integers or texts.
//   - any, json.RawMessage and types with JSON methods of their own: any value.
//     Types with text methods: string.
//   - a string type for which Options.EnumOf has choices: enum, or oneOf with titles.
//   - recursive types: $defs and $ref.
//
// Methods of the author's types (UnmarshalJSON, UnmarshalText) may still refuse what
// the validator accepts.
//
// # Tags
//
//	jsonschema:"text"   description
//	enum:"a,b"          allowed values of a string, integer or number; spaces around them do not count
//	default:"v"         for an absent property; of a string as it stands, otherwise JSON
//	minimum, maximum    of an integer or number, exact
//	minLength, maxLength  of a string, in Unicode code points
//	pattern:"re"        of a string; RE2 syntax (package regexp), found anywhere unless anchored
//	format:"name"       of a string; date-time, date, time, email, uri, uuid, ipv4, ipv6 are
//	                    checked, other registered names only tell the model
//	minItems, maxItems  of a slice
//	header:"Name"       the parameter is mirrored in the header Mcp-Param-Name (M-14 to M-18)
//
// On a slice or array, the tags for strings and numbers apply to its items. A default
// of a property is filled in only where the object that holds it is present. A tag that
// does not fit its field, and one that differs from these only in case, is an error.
//
// # Hand-written schemas
//
// Compile takes dialects 2020-12 (the default) and draft-07, and refuses others (F-22,
// F-23); a schema keeps to one. Nothing is ever fetched: a $ref leads to a place in the
// same document or the schema is refused (F-24, F-25), and so is a schema that leads
// back to itself at the same value. Format and content keywords are annotations,
// patterns are RE2, numbers exact. Work is bounded (F-26): see Compile.
//
// compile.go and keywords.go turn the text into schemas; evaluate.go, inplace.go and
// alternatives.go judge a document by them. Both sides read JSON as a tape, and share
// numbers, cursor and violations with the validator of types. Other implementations
// of the standard, and its official test suite, judge ours in the tests.
package schema
