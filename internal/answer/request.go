package answer

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Request is a request whose sender and query were checked and whose body was read.
type Request struct {
	*http.Request
	Caller string // what [Service.Check] returned: the id of the user who sends it, or ""
	Body   []byte // nil if its route takes none

	given []givenParam // the parameters of its query
}

type givenParam struct {
	name  string
	value any
}

// Param is a parameter of a query, which may be given once: its name and its reader. A handler
// gets its value by [Param.In].
type Param[T any] struct {
	Name string
	// Rule is what a value must be, as the end of a sentence that begins with the name.
	Rule string
	// Read returns what a value stands for, and whether it is of the form that Rule says.
	Read func(value string) (read T, isGood bool)
	// Check, if it is not nil, returns what else is wrong with a value that was read, such as
	// that nobody has the id that it is.
	Check func(T) error
	// Default is the value of a parameter that was not given.
	Default T
}

// In is the value of the parameter in a request.
func (p *Param[T]) In(r Request) T {
	for _, given := range r.given {
		if given.name == p.Name {
			return given.value.(T)
		}
	}
	return p.Default
}

// A Parameter is a pointer to a [Param] of any type.
type Parameter interface {
	name() string
	rule() string
	read(value string) (any, error)
}

func (p *Param[T]) name() string { return p.Name }
func (p *Param[T]) rule() string { return p.Name + " " + p.Rule }

func (p *Param[T]) read(text string) (any, error) {
	value, isGood := p.Read(text)
	if !isGood {
		return nil, BadRequest(p.rule())
	}
	if p.Check != nil {
		return value, p.Check(value)
	}
	return value, nil
}

const maxProblems = 20 // of a query that a message names

// readQuery reads the query, which may hold each of the route's parameters once and nothing
// else. It refuses what [url.ParseQuery] refuses. The error has all problems, in the order of
// the query. Its status is that of the first one.
func (rt *Route) readQuery(r *Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	pairs := strings.Count(r.URL.RawQuery, "&") + 1
	r.given = make([]givenParam, 0, min(pairs, len(rt.Params)))
	var problems []string
	status := 0
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		if pair == "" {
			continue
		}
		err := rt.readPair(r, pair)
		if err == nil || slices.Contains(problems, err.Error()) {
			continue
		}
		if problems == nil {
			status = 400
			if e, ok := errors.AsType[*Error](err); ok {
				status = e.Status
			}
		}
		problems = append(problems, err.Error())
	}
	if problems == nil {
		return nil
	}
	more := len(problems) - maxProblems
	if more > 0 {
		problems = append(problems[:maxProblems], fmt.Sprintf("and %d more problems", more))
	}
	return NewError(status, strings.Join(problems, "; "))
}

// readPair reads one parameter with its value: "limit=2".
func (rt *Route) readPair(r *Request, pair string) error {
	name, value, _ := strings.Cut(pair, "=")
	name, badName := url.QueryUnescape(name)
	value, badValue := url.QueryUnescape(value)
	if badName != nil || badValue != nil || strings.Contains(pair, ";") {
		return errQuery
	}
	for _, p := range rt.Params {
		if p.name() != name {
			continue
		}
		isSecond := slices.ContainsFunc(r.given, func(g givenParam) bool { return g.name == name })
		if isSecond {
			return BadRequest(p.rule())
		}
		read, err := p.read(value)
		r.given = append(r.given, givenParam{name, read})
		return err
	}
	return BadRequest(fmt.Sprintf("%.60q is not a query parameter of %s: it takes %s",
		name, rt.Operation, rt.takes()))
}

// takes is the list of the parameters that the query of a route takes.
func (rt *Route) takes() string {
	var names []string
	for _, p := range rt.Params {
		names = append(names, p.name())
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

var errQuery = BadRequest("the query string is malformed; write it as a=b&c=d, percent-encoded")
