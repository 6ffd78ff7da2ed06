package thaw

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/yosida95/uritemplate/v3"
)

// maxTemplateURI bounds what is matched against templates. No URI that a client can use
// elsewhere is longer.
const maxTemplateURI = 8 << 10

// uriTemplate is an RFC 6570 template of levels 1 to 3, read backwards: which values of
// its variables would have made a URI. The library parses; matching is one regular
// expression, which takes time linear in the URI.
type uriTemplate struct {
	variables []string
	queries   bool                  // it has {?…}
	match     func() *regexp.Regexp // compiled on the first look-up, not at start
}

func parseTemplate(text string) (*uriTemplate, error) {
	parsed, err := uritemplate.New(text)
	if err != nil {
		return nil, err
	}
	var pattern strings.Builder
	var variables []string
	pattern.WriteString(`\A`)
	for rest := text; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		pattern.WriteString(regexp.QuoteMeta(literal))
		if !found {
			break
		}
		var expression string
		expression, rest, _ = strings.Cut(after, "}")
		names, err := writeExpression(&pattern, expression)
		if err != nil {
			return nil, err
		}
		variables = append(variables, names...)
	}
	pattern.WriteString(`\z`)
	if len(parsed.Varnames()) != len(variables) {
		return nil, errors.New("a variable stands in it twice; one variable has one value")
	}
	return &uriTemplate{variables, strings.Contains(text, "{?"), sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern.String()) })}, nil
}

// What a value may consist of: with + and # reserved characters too (RFC 6570, 3.2.1).
const (
	unreserved = `((?:[A-Za-z0-9\-._~]|%[0-9A-Fa-f]{2})*)`
	anything   = `((?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)`
)

// writeExpression writes the pattern of one expression, a group for each of its variables.
// Undefined variables leave no trace in a URI, so every one is optional.
func writeExpression(pattern *strings.Builder, expression string) (names []string, err error) {
	operator := ""
	if expression != "" && strings.Contains("+#./;?&", expression[:1]) {
		operator, expression = expression[:1], expression[1:]
	}
	for i, name := range strings.Split(expression, ",") {
		if strings.ContainsAny(name, ":*") {
			return nil, fmt.Errorf("{%s%s}: prefix and explode modifiers have no single value to give back", operator, name)
		}
		names = append(names, name)
		quoted := regexp.QuoteMeta(name)
		switch operator {
		case "", "+":
			value := unreserved
			if operator == "+" {
				value = anything
			}
			if i > 0 {
				value = "(?:," + value + ")?"
			}
			pattern.WriteString(value)
		case "#":
			if i == 0 {
				pattern.WriteString("(?:#" + anything + ")?")
			} else {
				pattern.WriteString("(?:," + anything + ")?")
			}
		case ".", "/":
			pattern.WriteString("(?:" + regexp.QuoteMeta(operator) + unreserved + ")?")
		case ";":
			pattern.WriteString("(?:;" + quoted + "(?:=" + unreserved + ")?)?")
		case "?", "&":
			// The first that is there begins with the operator, the others with &: which one
			// that is, values checks.
			start := "&"
			if operator == "?" {
				start = "[?&]"
			}
			pattern.WriteString("(?:" + start + quoted + "=" + unreserved + ")?")
		}
	}
	return names, nil
}

// wellQueried reports whether a query begins with ? and goes on with &. The class of a value
// has neither, so where a template has {?…} no other ? or & can be between them.
func wellQueried(uri string) bool {
	question := strings.IndexByte(uri, '?')
	first := strings.IndexAny(uri, "?&")
	return question < 0 && first < 0 || question == first && !strings.Contains(uri[question+1:], "?")
}

// values are the percent-decoded values of the variables in uri; those that it leaves out
// are absent. ok is false if uri is none of the template's, or decodes to what is no UTF-8.
func (t *uriTemplate) values(uri string) (values map[string]string, ok bool) {
	if len(uri) > maxTemplateURI {
		return nil, false
	}
	groups := t.match().FindStringSubmatchIndex(uri)
	if groups == nil || t.queries && !wellQueried(uri) {
		return nil, false
	}
	values = make(map[string]string, len(t.variables))
	for i, name := range t.variables {
		start, end := groups[2*i+2], groups[2*i+3]
		if start < 0 {
			continue
		}
		value, err := url.PathUnescape(uri[start:end])
		if err != nil || !utf8.ValidString(value) {
			return nil, false
		}
		values[name] = value
	}
	return values, true
}

// has reports whether the template has a variable of this name.
func (t *uriTemplate) has(name string) bool { return slices.Contains(t.variables, name) }
