package schema

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// member is a struct field that becomes a property, before Go's rules of dominance
// among embedded structs have chosen.
type member struct {
	goName     string
	t          reflect.Type
	tag        reflect.StructTag
	name       string
	named      bool // by the tag
	omit       bool
	quoted     bool  // the json option string
	viaPointer bool  // reached through an embedded pointer
	parents    []int // indices of the embedded structs that lead to it
	pos        int   // its own index
}

func (m *member) index() []int { return append(slices.Clip(m.parents), m.pos) }

// fields fills n with the properties of struct type t.
func (w *walk) fields(t reflect.Type, n *node) {
	start := len(w.members)
	embedding := w.listMembers(t)
	members := w.members[start:]
	if embedding {
		members = dominant(members)
	}
	n.fields = w.fieldSlab.take(len(members))
	for i := range members {
		m, f := &members[i], &n.fields[i]
		w.path = append(w.path, m.goName)
		tags := w.parseTags(m.tag)
		f.name = m.name
		w.node(m.t, &f.node)
		if m.quoted {
			w.quote(m.t, &f.node)
		}
		w.apply(&tags, &f.node)
		n.defaults = n.defaults || tags.has&hasDefault != 0
		f.optional = m.omit || m.viaPointer || !w.Output && (tags.has&hasDefault != 0 || m.t.Kind() == reflect.Pointer)
		w.path = w.path[:len(w.path)-1]
	}
	w.members = w.members[:start]
}

type embedded struct {
	t          reflect.Type
	index      []int
	viaPointer bool
	descend    bool // whether structs embedded in it count; only once for each type
}

// listMembers adds to w.members what may become properties, breadth first: this is how
// the decoder looks at embedded structs.
func (w *walk) listMembers(t reflect.Type) (embedding bool) {
	var room [1]embedded
	queue := append(room[:0], embedded{t: t, descend: true})
	for q := 0; q < len(queue); q++ {
		e := queue[q]
		start := len(w.members)
		for i := range e.t.NumField() {
			sf := e.t.Field(i)
			w.path = append(w.path, sf.Name)
			if next, ok := w.member(sf, e, i, start); ok {
				if e.descend {
					next.descend = next.t != t && !slices.ContainsFunc(queue, func(o embedded) bool { return o.t == next.t })
					queue = append(queue, next)
				}
			}
			w.path = w.path[:len(w.path)-1]
		}
	}
	return len(queue) > 1
}

// member adds field sf of e to w.members, where e's begin at start, or returns the struct
// that it embeds.
func (w *walk) member(sf reflect.StructField, e embedded, i, start int) (embedded, bool) {
	json := jsonTag(sf.Tag)
	if json == "-" {
		return embedded{}, false
	}
	elem := sf.Type
	if elem.Kind() == reflect.Pointer && elem.Name() == "" {
		elem = elem.Elem()
	}
	embeds := sf.Anonymous && elem.Kind() == reflect.Struct
	if !sf.IsExported() && !embeds {
		if sf.Tag != "" {
			if tags := w.parseTags(sf.Tag); tags.has&^hasDescription != 0 {
				w.fail("the field is not exported, so it is neither read nor written, but it has tags")
			}
		}
		return embedded{}, false
	}
	m := member{goName: sf.Name, t: sf.Type, tag: sf.Tag, viaPointer: e.viaPointer, parents: e.index, pos: i}
	w.parseJSONTag(json, &m)
	if embeds && !m.named {
		if tags := w.parseTags(sf.Tag); m.omit || m.quoted || tags.has&^hasJSON != 0 {
			w.fail("an embedded struct is no property, so it cannot have tags; name it in a json tag to make it one")
		}
		isPointer := sf.Type.Kind() == reflect.Pointer
		if isPointer && !sf.IsExported() && !w.Output {
			w.fail("an embedded pointer to an unexported struct cannot be decoded; embed the struct itself")
		}
		return embedded{t: elem, index: m.index(), viaPointer: e.viaPointer || isPointer}, true
	}
	if !sf.IsExported() {
		w.fail("an embedded struct of unexported type cannot be a property; give the field a name")
		return embedded{}, false
	}
	for _, other := range w.members[start:] {
		if other.name == m.name {
			w.fail("the property %q is also that of field %s", m.name, other.goName)
			return embedded{}, false
		}
	}
	w.members = append(w.members, m)
	return embedded{}, false
}

// dominant keeps, of the members with one name, the one at the least depth, or the only
// one there that a tag names, or none.
func dominant(members []member) []member {
	slices.SortStableFunc(members, func(a, b member) int {
		byTag := 0
		if a.named != b.named {
			byTag = 1
			if a.named {
				byTag = -1
			}
		}
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.parents), len(b.parents)), byTag)
	})
	kept := members[:0]
	for len(members) > 0 {
		n := 1
		for n < len(members) && members[n].name == members[0].name {
			n++
		}
		if n == 1 || len(members[0].parents) != len(members[1].parents) || members[0].named != members[1].named {
			kept = append(kept, members[0])
		}
		members = members[n:]
	}
	slices.SortFunc(kept, func(a, b member) int { return slices.Compare(a.index(), b.index()) })
	return kept
}

// jsonTag is tag.Get("json"), sooner where it comes first, as it does nearly always.
func jsonTag(tag reflect.StructTag) string {
	if value, ok := strings.CutPrefix(string(tag), `json:"`); ok {
		if value, _, ok := strings.Cut(value, `"`); ok && strings.IndexByte(value, '\\') < 0 {
			return value
		}
	}
	return tag.Get("json")
}

// parseJSONTag fills what the json tag says.
func (w *walk) parseJSONTag(tag string, m *member) {
	name, options, _ := strings.Cut(tag, ",")
	m.name = m.goName
	if name != "" {
		if !isMemberName(name) {
			w.fail("json name %q has a quote, backslash, control character or invalid UTF-8", name)
		}
		m.name, m.named = name, true
	}
	for options != "" {
		var option string
		option, options, _ = strings.Cut(options, ",")
		switch option {
		case "omitempty", "omitzero":
			m.omit = true
		case "string":
			m.quoted = true
		default:
			w.fail("unknown json option %q; allowed are omitempty, omitzero, string", option)
		}
	}
}

// isMemberName reports whether the decoder takes name from a tag as it stands.
func isMemberName(name string) bool {
	ascii := true
	for i := range len(name) {
		switch c := name[i]; {
		case c < ' ' || c == '\\' || c == '\'' || c == '"' || c == '`':
			return false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return ascii || utf8.ValidString(name)
}

// quote makes n the string form of a number or boolean (json option string).
func (w *walk) quote(t reflect.Type, n *node) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Pointer:
		w.fail("the json option string does not reach through two pointers")
		return
	case n.kind == kindInteger:
		n.form = formInteger
	case n.kind == kindNumber && n.bits > 0:
		n.form = formFloat
	case n.kind == kindBool:
		n.form = formBool
	default:
		w.fail("the json option string is for integers, floats and booleans, not for %v", t)
		return
	}
	n.kind = kindString
}
