package schema

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// Options say what a schema is for.
type Options struct {
	// Output makes it describe what strictjson.Marshal writes, of any type. Without it,
	// it describes what Unmarshal reads, and its root is an object.
	Output bool
	// EnumOf gives the choices of a named string type, if it has any. May be nil.
	EnumOf func(reflect.Type) ([]Choice, bool)
}

// Choice is an allowed value and what a user reads for it; Title may be empty.
type Choice struct{ Value, Title string }

// Type is the checked schema of a Go type. It is safe for concurrent use.
type Type struct {
	t       reflect.Type
	options Options
	headers []Header

	resolve sync.Once // the walk that stays
	prepare sync.Once // for validation
	root    *node
	defs    []*node // recursive types other than the root
}

// Of checks t and every tag in it, and no more: what is built on the way is thrown away,
// since most of a server's tools are not called before its instance ends. The error
// joins all that is wrong, each with type, field and what is allowed. For input the
// root must be a struct or a map with string keys (F-06).
func Of(t reflect.Type, o Options) (*Type, error) {
	w := walks.Get().(*walk)
	defer func() {
		w.reset()
		walks.Put(w)
	}()
	root := w.of(t, o)
	s := &Type{t: t, options: o}
	if !o.Output {
		s.headers = w.checkHeaders(root)
	}
	if len(w.errs) > 0 {
		return nil, errors.Join(w.errs...)
	}
	return s, nil
}

// walks keeps the memory of walks that are done with.
var walks = sync.Pool{New: func() any { return &walk{} }}

// resolved is t once its nodes are there.
func (t *Type) resolved() *Type {
	t.resolve.Do(func() {
		var w walk
		t.root = w.of(t.t, t.options) // Of found nothing wrong
		for _, r := range w.recursive {
			if r.node != t.root {
				t.defs = append(t.defs, r.node)
			}
		}
	})
	return t
}

func isObject(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != timeType || t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
}

// Headers are the parameters mirrored in HTTP headers, in field order.
func (t *Type) Headers() []Header { return t.headers }

// Validator returns the validator of the type; the first call prepares it.
func (t *Type) Validator() Validator {
	t.resolved().prepare.Do(func() {
		t.root.prepare()
		for _, d := range t.defs {
			d.prepare()
		}
	})
	return t
}

type kind uint8

const (
	kindAny kind = iota
	kindObject
	kindMap
	kindArray
	kindString
	kindInteger
	kindNumber
	kindBool
	kindRef
)

// node is the schema of one value.
type node struct {
	kind     kind
	null     bool // null is allowed too
	unsigned bool
	duration bool // an integer in nanoseconds
	form     form // of a string
	bits     uint8
	fixed    int      // length of a Go array + 1; 0 for a slice
	lo, hi   integer  // of an integer, and of a string of form formInteger
	elem     *node    // of an array or map
	keys     *node    // of a map; nil for any string
	target   *node    // of a ref
	fields   []field  // of an object
	required []uint64 // bits of the fields that are; made by prepare
	defaults bool     // a field has a default
	rules    *rules   // nil without tags for it

	defName     string // under $defs; set for recursive types
	description string
	header      string
	value       []byte // the default as JSON
}

// field is a property of an object.
type field struct {
	name     string
	optional bool
	node     node
}

// walk turns types into nodes.
type walk struct {
	Options
	rootType  reflect.Type
	path      []string // Go field names from the root
	open      []named  // types being walked
	recursive []named
	headers   []headerUse
	defaults  []defaultUse
	nodes     int
	errs      []error

	members    []member // of the structs being walked
	buffer     []byte
	nodeSlab   slab[node]
	fieldSlab  slab[field]
	rulesSlab  slab[rules]
	choiceSlab slab[Choice]
	pathSlab   slab[string]
	valueSlab  slab[byte]
}

// reset forgets everything but the memory. Errors have gone to the caller.
func (w *walk) reset() {
	w.nodeSlab.reset()
	w.fieldSlab.reset()
	w.rulesSlab.reset()
	w.choiceSlab.reset()
	w.pathSlab.reset()
	w.valueSlab.reset()
	w.path, w.open, w.recursive = w.path[:0], w.open[:0], w.recursive[:0]
	w.headers, w.defaults, w.members = w.headers[:0], w.defaults[:0], w.members[:0]
	w.nodes, w.errs = 0, nil
}

// of is the root node of t.
func (w *walk) of(t reflect.Type, o Options) *node {
	w.Options, w.rootType = o, t
	root := &w.nodeSlab.take(1)[0]
	if !o.Output && !isObject(t) {
		w.fail("the arguments of a tool are one JSON object: use a struct or a map with string keys")
		return root
	}
	w.node(t, root)
	if root.kind == kindRef && !root.null {
		root = root.target // refs to it are "#"
	} else if !o.Output && root.kind != kindObject && root.kind != kindMap {
		w.fail("a tool's arguments are one JSON object, and the type's own UnmarshalJSON or UnmarshalText hides whether it is one")
	}
	if len(w.errs) == 0 && len(w.defaults) > 0 {
		w.checkDefaults()
	}
	return root
}

type named struct {
	t    reflect.Type
	node *node
	used bool // something inside refers to it
}

// maxNodes stops types that unfold without bound before they fill a client's context.
const maxNodes = 10_000

func (w *walk) fail(format string, args ...any) {
	where := w.rootType.String()
	if len(w.path) > 0 {
		where += "." + strings.Join(w.path, ".")
	}
	w.errs = append(w.errs, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

var (
	timeType       = reflect.TypeFor[time.Time]()
	durationType   = reflect.TypeFor[time.Duration]()
	jsonNumberType = reflect.TypeFor[stdjson.Number]()

	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	unmarshalerFromType = reflect.TypeFor[json.UnmarshalerFrom]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	marshalerToType     = reflect.TypeFor[json.MarshalerTo]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textAppenderType    = reflect.TypeFor[encoding.TextAppender]()
)

var basicTypes = [...]reflect.Type{
	reflect.Bool: reflect.TypeFor[bool](), reflect.String: reflect.TypeFor[string](),
	reflect.Int: reflect.TypeFor[int](), reflect.Int64: reflect.TypeFor[int64](),
	reflect.Float64: reflect.TypeFor[float64](), reflect.UnsafePointer: nil,
}

// node fills n with the schema of t.
func (w *walk) node(t reflect.Type, n *node) {
	for depth := 0; t.Kind() == reflect.Pointer; depth++ {
		if depth == 8 {
			w.fail("%v has more levels of pointers than any value needs", t)
			return
		}
		t, n.null = t.Elem(), true
	}
	if w.nodes++; w.nodes > maxNodes {
		if w.nodes == maxNodes+1 {
			w.fail("the type has more than %d fields and items when written out", maxNodes)
		}
		return
	}
	switch t {
	case timeType:
		n.kind, n.form = kindString, formDateTime
		return
	case durationType:
		n.duration = true
	case jsonNumberType:
		n.kind = kindNumber
		return
	case basicTypes[t.Kind()]:
		// These have neither choices nor methods, and most fields are one of them.
	default:
		if w.choices(t, n) || w.methods(t, n) {
			return
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		n.kind = kindBool
	case reflect.String:
		n.kind = kindString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.integers(t.Bits(), false)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n.integers(t.Bits(), true)
	case reflect.Float32, reflect.Float64:
		n.kind, n.bits = kindNumber, uint8(t.Bits())
	case reflect.Interface:
		n.kind, n.null = kindAny, false
		if t.NumMethod() > 0 && !w.Output {
			w.fail("no value can be decoded into the interface %v; use any or a concrete type", t)
		}
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		w.composite(t, n)
	default:
		w.fail("type %v has no JSON form", t)
	}
}

func (n *node) integers(bits int, unsigned bool) {
	n.kind, n.bits, n.unsigned = kindInteger, uint8(bits), unsigned
	n.lo, n.hi = integerLimits(bits, unsigned)
}

// composite fills n for the kinds that can contain themselves.
func (w *walk) composite(t reflect.Type, n *node) {
	if t.Name() == "" {
		w.container(t, n)
		return
	}
	for i := range w.open {
		if o := &w.open[i]; o.t == t {
			o.used = true
			n.kind, n.target = kindRef, o.node
			return
		}
	}
	for _, r := range w.recursive {
		if r.t == t {
			n.kind, n.target = kindRef, r.node
			return
		}
	}
	// Refs point at the node while its place in a parent is still moving.
	def := &w.nodeSlab.take(1)[0]
	w.open = append(w.open, named{t: t, node: def})
	w.container(t, def)
	last := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	if last.used {
		def.defName = w.freeName(t)
		w.recursive = append(w.recursive, last)
		n.kind, n.target = kindRef, def
		return
	}
	null := n.null
	*n = *def
	n.null = null
}

// freeName is a name for $defs that needs no escaping in a JSON Pointer or URI.
func (w *walk) freeName(t reflect.Type) string {
	base := strings.Map(func(r rune) rune {
		if r < 0x80 && (isLetter(byte(r)) || r >= '0' && r <= '9') {
			return r
		}
		return '_'
	}, t.Name())
	name := base
	for i := 2; ; i++ {
		taken := false
		for _, r := range w.recursive {
			taken = taken || r.node.defName == name
		}
		if !taken {
			return name
		}
		name = fmt.Sprintf("%s_%d", base, i)
	}
}

func (w *walk) container(t reflect.Type, n *node) {
	switch t.Kind() {
	case reflect.Struct:
		n.kind = kindObject
		w.fields(t, n)
	case reflect.Map:
		n.kind = kindMap
		w.keys(t.Key(), n)
		n.elem = w.inside("[key]", t.Elem())
	default:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice && !marshals(t.Elem()) {
			n.kind, n.form = kindString, formBase64
			return
		}
		n.kind = kindArray
		if t.Kind() == reflect.Array {
			n.fixed = t.Len() + 1
		}
		n.elem = w.inside("[]", t.Elem())
	}
}

func (w *walk) inside(step string, t reflect.Type) *node {
	w.path = append(w.path, step)
	n := &w.nodeSlab.take(1)[0]
	w.node(t, n)
	w.path = w.path[:len(w.path)-1]
	return n
}

// keys fills n.keys with the schema of a map's key type.
func (w *walk) keys(t reflect.Type, n *node) {
	key := &w.nodeSlab.take(1)[0]
	switch text := w.textKey(t); {
	case t == jsonNumberType:
		// encoding/json and its successor disagree about these.
	case w.choices(t, key):
		n.keys = key
		return
	case text || t.Kind() == reflect.String:
		return
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr:
		key.integers(t.Bits(), t.Kind() >= reflect.Uint)
		key.kind, key.form = kindString, formInteger
		n.keys = key
		return
	}
	w.fail("map keys of type %v have no JSON form; allowed are strings, integers and types with text methods", t)
}

func (w *walk) textKey(t reflect.Type) bool {
	if w.Output {
		return t.Implements(textMarshalerType) || t.Implements(textAppenderType)
	}
	return reflect.PointerTo(t).Implements(textUnmarshalerType)
}

// choices fills n for a string type with choices.
func (w *walk) choices(t reflect.Type, n *node) bool {
	if w.EnumOf == nil || t.Kind() != reflect.String || t.PkgPath() == "" {
		return false
	}
	choices, ok := w.EnumOf(t)
	if !ok {
		return false
	}
	n.kind, n.rules = kindString, w.newRules()
	for i, c := range choices {
		for _, earlier := range choices[:i] {
			if earlier.Value == c.Value {
				w.fail("the choices of %v name %q twice", t, c.Value)
			}
		}
		n.rules.titled = n.rules.titled || c.Title != ""
	}
	if len(choices) == 0 {
		w.fail("%v has no choices; at least one is needed", t)
	}
	n.rules.enum = choices
	return true
}

// methods fills n for a type that encodes itself, in the direction asked for.
func (w *walk) methods(t reflect.Type, n *node) bool {
	if t.PkgPath() == "" && t.Kind() != reflect.Struct || t.Kind() == reflect.Interface {
		return false
	}
	pointer := reflect.PointerTo(t)
	if pointer.NumMethod() == 0 {
		return false
	}
	if !w.Output {
		switch {
		case pointer.Implements(unmarshalerType), pointer.Implements(unmarshalerFromType):
			n.kind, n.null = kindAny, false
		case pointer.Implements(textUnmarshalerType):
			n.kind = kindString
		default:
			return false
		}
		return true
	}
	switch {
	case pointer.Implements(marshalerType), pointer.Implements(marshalerToType):
		n.kind, n.null = kindAny, false
	case t.Implements(textMarshalerType), t.Implements(textAppenderType):
		n.kind = kindString
	case pointer.Implements(textMarshalerType), pointer.Implements(textAppenderType):
		// Called only where the value is addressable: either form may be written.
		n.kind, n.null = kindAny, false
	default:
		return false
	}
	return true
}

// marshals reports whether a byte type encodes itself, which makes a slice of it an
// array.
func marshals(t reflect.Type) bool {
	if t.PkgPath() == "" {
		return false
	}
	p := reflect.PointerTo(t)
	return p.Implements(marshalerType) || p.Implements(marshalerToType) || p.Implements(textMarshalerType) || p.Implements(textAppenderType)
}
