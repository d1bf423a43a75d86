package compatibility

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What an earlier openapi.json describes still works: each request is accepted, and each response has what it
// had. The names of schemas, parameters and responses stay.
func TestOpenAPI(t *testing.T) {
	const current = "../../openapi.json"
	for _, text := range read(t, "testdata/openapi-*.json") {
		c := comparison{old: parse(t, text).(object), now: parse(t, read(t, current)[current]).(object)}
		old, now := c.old["components"].(object), c.now["components"].(object)
		for _, kind := range []string{"schemas", "parameters", "responses"} {
			for name := range old[kind].(object) {
				c.keep(now[kind].(object)[name] != nil, "components/%s/%s", kind, name)
			}
		}
		c.walk("components/securitySchemes", old["securitySchemes"], now["securitySchemes"], false)
		c.walk("servers", list(c.old["servers"])[0], list(c.now["servers"])[0], false)
		c.keyword("", "security", c.old["security"], c.now["security"], false)
		c.walk("", c.old["paths"], c.now["paths"], false)
		wantNone(t, c.gone)
	}
}

// comparison finds what a document has lost.
type comparison struct {
	old, now object // documents
	gone     []string
}

// keep adds a line to gone unless ok is true.
func (c *comparison) keep(ok bool, format string, args ...any) {
	if !ok {
		c.gone = append(c.gone, "openapi.json: "+fmt.Sprintf(format, args...))
	}
}

// walk compares two objects at the same place, and all that they contain. A request may need less and accept
// more than before. A response may only have more.
func (c *comparison) walk(place string, old, now any, request bool) {
	was, is := resolve(c.old, old), resolve(c.now, now)
	if is == nil {
		c.keep(false, "%s", place)
		return
	}
	name, _ := old.(object)["$ref"].(string)
	if strings.Contains(name, "/schemas/") {
		c.keep(now.(object)["$ref"] == name, "%s: its schema is %s", place, name)
	}
	for key := range union(was, is) {
		c.keyword(place, key, was[key], is[key], request)
	}
}

// keyword compares a field of two objects, or what is there in place of it.
func (c *comparison) keyword(place, key string, was, is any, request bool) {
	line := fmt.Sprintf("%s: %s: %v", place, key, was)
	limit, _ := was.(float64)
	size, _ := is.(float64)
	switch key {
	case "summary", "example", "examples":
	case "description":
		code := regexp.MustCompile("^`\\w+`:").FindString(fmt.Sprint(was)) // of an error
		c.keep(strings.HasPrefix(fmt.Sprint(is), code), "%s: %s", place, code)
	case "required":
		less, more := without(list(was), list(is)), without(list(is), list(was))
		if request {
			c.keep(more == nil, "%s: optional: %v", place, more)
		} else {
			c.keep(less == nil, "%s: required: %v", place, less)
		}
	case "type", "enum":
		less, more := without(list(was), list(is)), without(list(is), list(was))
		c.keep(less == nil && (more == nil || request && was != nil), "%s", line)
	case "maxLength", "maximum", "maxItems":
		c.keep(!request || is == nil || was != nil && size >= limit, "%s", line)
	case "minLength", "minimum", "minItems":
		c.keep(!request || is == nil || was != nil && size <= limit, "%s", line)
	case "pattern", "format", "const":
		c.keep(is == was || is == nil && request, "%s", line)
	case "additionalProperties":
		c.keep(is != false || was == false || !request, "%s", line)
	case "security", "tags": // alternatives and names
		for _, value := range list(was) {
			same := func(x any) bool { return fmt.Sprint(x) == fmt.Sprint(value) }
			c.keep(slices.ContainsFunc(list(is), same), "%s", line)
		}
	case "properties":
		before, _ := was.(object)
		fields, _ := is.(object)
		for name, field := range before {
			c.walk(place+"."+name, field, fields[name], request)
		}
	case "anyOf", "parameters":
		request = request || key == "parameters"
		before, parts := byName(c.old, was), byName(c.now, is)
		for name := range union(before, parts) {
			if before[name] != nil {
				c.walk(place+" "+name, before[name], parts[name], request)
				continue
			}
			required := resolve(c.now, parts[name])["required"] == true
			c.keep(request && !required, "%s without %s", place, name)
		}
	default: // such as a path, a method, a status or a media type
		if _, isObject := was.(object); isObject {
			c.walk(strings.TrimSpace(place+" "+key), was, is, request || key == "requestBody")
		} else {
			c.keep(was == nil || fmt.Sprint(is) == fmt.Sprint(was), "%s", line)
		}
	}
}

// resolve returns an object of a document, or the component that it refers to.
func resolve(document object, value any) object {
	o, _ := value.(object)
	ref, found := o["$ref"].(string)
	if !found {
		return o
	}
	value = document
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		value = value.(object)[name]
	}
	return value.(object)
}

// byName returns the parameters in a list by their places and names, and alternatives by their types.
func byName(document object, all any) object {
	parts := object{}
	for _, part := range list(all) {
		fields := resolve(document, part)
		parts[strings.Trim(fmt.Sprintln(fields["in"], fields["name"], fields["type"]), "<nil> \n")] = part
	}
	return parts
}

// list returns a list, a list of one value or, for a missing one and false, nil.
func list(value any) []any {
	all, isList := value.([]any)
	switch {
	case isList:
		return all
	case value == nil, value == false:
		return nil
	}
	return []any{value}
}

func union(a, b object) object {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
