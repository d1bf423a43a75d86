package testdouble

import (
	"log/slog"
	"slices"
	"sync"

	"example.com/events/internal/httpapi"
)

// Problem kinds.
const (
	UnknownRoute = "unknown_route"
	UnusedFault  = "unused_fault"
	UnsafeRetry  = "unsafe_retry"
)

// Problem is a mistake of a test or its client.
type Problem struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	UserID string `json:"user_id"` // may be empty
}

// report adds problems of requests.
func (d *Double) report(problems ...Problem) {
	for _, p := range problems {
		if !d.problems.add(p) {
			continue
		}
		d.mu.Lock()
		if len(d.found) < maxProblems {
			d.found = append(d.found, p)
		}
		d.mu.Unlock()
	}
}

// Problems returns the problems since the double was created, including faults that haven't applied yet. A
// user ID selects the problems of this user.
func (d *Double) Problems(userID string) ([]Problem, error) {
	d.mu.Lock()
	problems := append([]Problem{}, d.found...)
	faults := slices.Clone(d.faults)
	d.mu.Unlock()
	if !d.problems.AllowUnusedFaults {
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

// Problems collects the problems of a double. Doubles that replace each other share it.
type Problems struct {
	AllowUnknownRoutes, AllowUnusedFaults, AllowUnsafeRetries bool // if true, not a problem

	Logger *slog.Logger // receives a warning for each; may be nil

	mu   sync.Mutex // guards list
	list []Problem
}

const maxProblems = 1000 // as many as requests in a journal

// add adds and logs a problem, unless its kind is allowed. It reports whether the problem counts.
func (p *Problems) add(problem Problem) bool {
	allowed := map[string]bool{
		UnknownRoute: p.AllowUnknownRoutes,
		UnusedFault:  p.AllowUnusedFaults,
		UnsafeRetry:  p.AllowUnsafeRetries,
	}
	if allowed[problem.Kind] {
		return false
	}
	if p.Logger != nil {
		p.Logger.Warn("problem found", "kind", problem.Kind, "problem", problem.Text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) < maxProblems {
		p.list = append(p.list, problem)
	}
	return true
}

// All returns the problems so far.
func (p *Problems) All() []Problem {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}
