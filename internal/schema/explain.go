package schema

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	rule "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/thaw-mcp/thaw/internal/strictjson"
)

// violationsOf makes violations of the library's tree of errors. The library walks
// maps, so they are put in order before some are left out.
func violationsOf(err error) []Violation {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []Violation{{Message: "does not satisfy its schema"}}
	}
	var r report
	for _, l := range leavesOf(invalid) {
		r.add(l.Violation)
	}
	return r.list
}

// leaf is a rule broken, whatever the keywords through which the library came to it.
type leaf struct {
	Violation
	depth int  // of the value in the document
	other bool // the value is of another type, or another constant, than is asked for
}

func leavesOf(e *jsonschema.ValidationError) []leaf {
	var list []leaf
	gather(&list, e)
	slices.SortStableFunc(list, func(a, b leaf) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return list
}

func gather(list *[]leaf, e *jsonschema.ValidationError) {
	at := leaf{depth: len(e.InstanceLocation)}
	at.Path = pointerOf(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *rule.AnyOf:
		gatherAlternatives(list, e, at, "anyOf")
		return
	case *rule.OneOf:
		if len(k.Subschemas) == 0 {
			gatherAlternatives(list, e, at, "oneOf")
			return
		}
	case *rule.PropertyNames:
		// The library gives these a location that later ones overwrite.
		at.Path, at.depth = "", 0
		at.Message = "property name " + quoted(k.Property) + " is not allowed"
		for _, cause := range e.Causes {
			if why := leavesOf(cause); len(why) > 0 {
				at.Message = "property name " + quoted(k.Property) + " " + why[0].Message
			}
		}
		*list = append(*list, at)
		return
	case *rule.Contains, *rule.MinContains:
		// Why each item is not of the kind is no help.
	case *rule.Required:
		for _, name := range k.Missing {
			at.Message = missingProperty(name)
			*list = append(*list, at)
		}
		return
	case *rule.AdditionalProperties:
		for _, name := range k.Properties {
			at.Message = "unknown property " + quoted(name)
			*list = append(*list, at)
		}
		return
	case *rule.Type:
		at.other = true
	case *rule.Const:
		at.other, at.depth = true, at.depth-1
	default:
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				gather(list, cause)
			}
			return
		}
	}
	at.Message = messageOf(e.ErrorKind)
	*list = append(*list, at)
}

// gatherAlternatives says why no alternative matched: what is wrong by the one that was
// meant, if only one can have been, else the first thing wrong by each.
func gatherAlternatives(list *[]leaf, e *jsonschema.ValidationError, at leaf, keyword string) {
	branches := make([][]leaf, len(e.Causes))
	var meant []leaf
	candidates := 0
	for i, cause := range e.Causes {
		branches[i] = leavesOf(cause)
		if !slices.ContainsFunc(branches[i], func(l leaf) bool { return l.other && l.depth <= at.depth }) {
			candidates++
			meant = branches[i]
		}
	}
	if candidates == 1 {
		*list = append(*list, meant...)
		return
	}
	const most = 6
	var text strings.Builder
	fmt.Fprintf(&text, "must match one of the %d alternatives of %s:", len(branches), keyword)
	for i, branch := range branches {
		if i == most {
			text.WriteString(" …")
			break
		}
		if len(branch) > 0 {
			first := branch[0]
			first.Path = strings.TrimPrefix(first.Path, at.Path)
			fmt.Fprintf(&text, " (%d) %s", i+1, clipTo(first.String(), 160))
		}
	}
	at.Message = text.String()
	*list = append(*list, at)
}

// messageOf says what a rule allows. What the document said comes in only where it is
// short and one of few values was meant.
func messageOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *rule.Type:
		want := make([]string, len(k.Want))
		for i, w := range k.Want {
			want[i] = withArticle(w)
		}
		return "must be " + strings.Join(want, " or ") + ", not " + withArticle(k.Got)
	case *rule.Enum:
		return notAmong(listed(k.Want, literal), textOf(k.Got))
	case *rule.Const:
		return notAmong(literal(k.Want), textOf(k.Got))
	case *rule.Pattern:
		return "must match the pattern " + clip(k.Want)
	case *rule.MinLength:
		return tooFew(k.Want, "character", k.Got)
	case *rule.MaxLength:
		return tooMany(k.Want, "character", k.Got)
	case *rule.MinItems:
		return tooFew(k.Want, "item", k.Got)
	case *rule.MaxItems:
		return tooMany(k.Want, "item", k.Got)
	case *rule.AdditionalItems:
		return fmt.Sprintf("has %s too many", plural(k.Count, "item"))
	case *rule.MinProperties:
		return tooFew(k.Want, "property", k.Got)
	case *rule.MaxProperties:
		return tooMany(k.Want, "property", k.Got)
	case *rule.UniqueItems:
		return fmt.Sprintf("must not have equal items, but items %d and %d are", k.Duplicates[0], k.Duplicates[1])
	case *rule.Minimum:
		return "must be at least " + decimalOf(k.Want)
	case *rule.Maximum:
		return "must be at most " + decimalOf(k.Want)
	case *rule.ExclusiveMinimum:
		return "must be more than " + decimalOf(k.Want)
	case *rule.ExclusiveMaximum:
		return "must be less than " + decimalOf(k.Want)
	case *rule.MultipleOf:
		return "must be a multiple of " + decimalOf(k.Want)
	case *rule.DependentRequired:
		return "with property " + quoted(k.Prop) + " there must be " + listed(k.Missing, quoted)
	case *rule.Dependency:
		return "with property " + quoted(k.Prop) + " there must be " + listed(k.Missing, quoted)
	case *rule.FalseSchema:
		return "is not allowed"
	case *rule.OneOf:
		return fmt.Sprintf("must match exactly one of the alternatives of oneOf, but matches alternatives %d and %d", k.Subschemas[0]+1, k.Subschemas[1]+1)
	case *rule.RefCycle:
		return "cannot be checked: the schema refers to itself without going down to a property or item"
	case *rule.Not:
		return "must not match the schema under not"
	case *rule.Contains:
		return "must have an item of the kind that contains describes"
	case *rule.MinContains:
		return fmt.Sprintf("must have at least %s of the kind that contains describes, has %d", plural(k.Want, "item"), len(k.Got))
	case *rule.MaxContains:
		return fmt.Sprintf("must have at most %s of the kind that contains describes, has %d", plural(k.Want, "item"), len(k.Got))
	}
	return "does not satisfy " + strings.Join(k.KeywordPath(), "/")
}

func withArticle(typeName string) string {
	switch typeName {
	case "null":
		return typeName
	case "object", "array", "integer":
		return "an " + typeName
	}
	return "a " + typeName
}

// textOf is a value as JSON.
func textOf(v any) []byte {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

func literal(v any) string { return clip(textOf(v)) }

// decimalOf is a number of the schema as it would be written, since a fraction of
// integers says little.
func decimalOf(r *big.Rat) string {
	digits, _ := r.FloatPrec() // exact: a schema's numbers are decimals
	return clip(r.FloatString(digits))
}

func pointerOf(location []string) string {
	var path []byte
	for _, name := range location {
		path = appendPointerToken(append(path, '/'), clip(name))
	}
	return string(path)
}
