package testdouble

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"example.com/events/internal/httpapi"
)

// Problem kinds.
const (
	UnknownRoute = "unknown_route"
	UnusedFault  = "unused_fault"
	UnsafeRetry  = "unsafe_retry"
)

// Kinds maps all problem kinds to their descriptions. In 1.x, a new kind needs an option that turns it on.
var Kinds = map[string]string{
	UnknownRoute: "the client requests a route that doesn't exist",
	UnusedFault:  "a fault never applies",
	UnsafeRetry:  "the client repeats a create with another Idempotency-Key or none",
}

// Problem is a mistake of a test or its client.
type Problem struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	UserID string `json:"user_id"` // may be empty
}

// reportLocked adds the problem of a request, unless its kind is allowed.
func (d *Double) reportLocked(p Problem) {
	if d.problems.add(p) {
		d.found = appendNewest(d.found, p, maxProblems)
	}
}

// Problems returns the problems since the double was created, including faults that haven't applied yet. A
// user ID selects the problems of this user.
func (d *Double) Problems(userID string) ([]Problem, error) {
	d.mu.Lock()
	problems := append([]Problem{}, d.found...)
	faults := slices.Clone(d.faults)
	d.mu.Unlock()
	if !slices.Contains(d.problems.allowed, UnusedFault) {
		problems = append(problems, unusedFaults(faults)...)
	}
	if userID == "" {
		return problems, nil
	}
	other := func(p Problem) bool { return p.UserID != userID }
	return slices.DeleteFunc(problems, other), d.checkUser(userID)
}

func unusedFaults(faults []*InjectedFault) (problems []Problem) {
	for _, f := range faults {
		if f.Hits() == 0 {
			text := httpapi.Redact("fault that never applied: " + f.describe())
			problems = append(problems, Problem{UnusedFault, text, f.UserID})
		}
	}
	return problems
}

// ProblemList collects the problems of a double. Doubles that replace each other share it.
type ProblemList struct {
	Logger *slog.Logger // receives a warning for each; may be nil

	allowed []string // kinds

	mu   sync.Mutex // guards list
	list []Problem
}

const maxProblems = 1000 // as many as requests in a journal

// Allow ignores problems of some kinds. Call it before the double serves requests.
func (p *ProblemList) Allow(kinds ...string) error {
	for _, kind := range kinds {
		if Kinds[kind] == "" {
			return fmt.Errorf("problem kind %.80q is not known: it must be one of %s", kind,
				strings.Join(slices.Sorted(maps.Keys(Kinds)), ", "))
		}
		p.allowed = append(p.allowed, kind)
	}
	return nil
}

// add adds and logs a problem, unless its kind is allowed. It reports whether the problem counts.
func (p *ProblemList) add(problem Problem) bool {
	if slices.Contains(p.allowed, problem.Kind) {
		return false
	}
	if p.Logger != nil {
		p.Logger.Warn("problem found", "kind", problem.Kind, "problem", problem.Text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = appendNewest(p.list, problem, maxProblems)
	return true
}

// appendNewest appends an element to a list, and drops the oldest if there are more than max.
func appendNewest[T any](list []T, element T, max int) []T {
	if len(list) == max {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, element)
}

// All returns the newest problems.
func (p *ProblemList) All() []Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}
