package answer

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// deadlineWriter keeps the time by which an answer has to be written.
type deadlineWriter struct {
	http.ResponseWriter
	deadline time.Time
}

func (w *deadlineWriter) SetWriteDeadline(deadline time.Time) error {
	w.deadline = deadline
	return nil
}

// An answer gets the time of its server to be written, where there is a server that has one.
func TestRestartWriteTimeout(t *testing.T) {
	t.Parallel()
	of := func(server *http.Server) context.Context {
		return context.WithValue(t.Context(), http.ServerContextKey, server)
	}
	for _, tt := range []struct {
		name string
		ctx  context.Context
		want time.Duration // from now; 0: there is no deadline
	}{
		{"no server", t.Context(), 0},
		{"a server without a limit", of(&http.Server{}), 0},
		{"a server with one", of(&http.Server{WriteTimeout: time.Hour}), time.Hour},
	} {
		var w deadlineWriter
		before := time.Now()
		RestartWriteTimeout(tt.ctx, &w)
		isSet := !w.deadline.IsZero()
		if isSet != (tt.want > 0) || isSet && w.deadline.Before(before.Add(tt.want)) {
			t.Errorf("%s: the deadline is %v, want %v after %v", tt.name, w.deadline, tt.want, before)
		}
	}
}
