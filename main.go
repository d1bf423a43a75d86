package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"

	_ "embed"

	"example.com/events/internal/double"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/record"
	"example.com/events/internal/recordfile"
	"example.com/events/internal/strict"
)

// The timeouts and limits of the server.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 120 * time.Second
	stopTimeout   = 8 * time.Second // Docker kills after 10
	maxHeader     = 16 << 10        // bytes
)

//go:embed internal/demo.json
var demoSeed []byte

// demoKey is in demoSeed.
const demoKey = "svc_live_demo"

// Run is the command eventsd: it does what args ask for, which do not hold the
// program's name, and returns the exit status. Flags that are not given are
// read from getenv, -new-event-status from EVENTSD_NEW_EVENT_STATUS and so on.
// A server stops when ctx is done, or at SIGINT or SIGTERM. The status is 0, 2
// for a mistake that the caller can mend, told in one line on stderr, and 1 for
// a failure: a data file that could not be written, a server that is not well.
func Run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &call{ctx: ctx, getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr}
	err := c.run(args)
	failure, failed := errors.AsType[*failure](err)
	switch {
	case err == nil, errors.Is(err, context.Canceled): // it was told to stop
		return 0
	case failed:
		if failure.message != "" {
			fmt.Fprintln(stderr, "eventsd: "+failure.message)
		}
		return 1
	}
	fmt.Fprintln(stderr, "eventsd: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	return 2
}

// failure ends the command with status 1.
type failure struct{ message string }

func (f *failure) Error() string { return f.message }

// call is one run of the command.
type call struct {
	ctx            context.Context
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
	opt            options
	args           []string // what follows the flags
	given          map[string]bool
	ready          *os.File // what is to be the ready file
}

type options struct {
	addr, data, seed, status, readyFile, log string
	memory, firstKey, verbose, salvage, json bool
	name, email, user                        string
	start, token                             string
}

// subcommand is one thing that eventsd does.
type subcommand struct {
	name, args, summary string
	flags               []string // of those in define
	run                 func(*call) error
}

var serverFlags = []string{"addr", "data", "memory", "seed", "first-key", "new-event-status", "ready-file", "log", "v"}

func subcommands() []subcommand {
	return []subcommand{
		{"serve", "", "serve the API; also without a subcommand", serverFlags, (*call).serve},
		{"demo", "", "serve a built-in example from memory, with curl lines to try", []string{"addr", "ready-file", "log", "v"}, (*call).demo},
		{"double", "", "serve a test double from memory, steered by a control API", []string{"addr=127.0.0.1:0", "seed", "time", "control-token", "ready-file", "log", "v"}, (*call).double},
		{"key issue", "", "make an API key for a user and print it: it is shown this once", []string{"data", "name", "email", "user", "v"}, (*call).keyIssue},
		{"key list", "", "list the keys, without their secrets", []string{"data", "json", "v"}, (*call).keyList},
		{"key revoke", "ID", "end a key for good", []string{"data", "v"}, (*call).keyRevoke},
		{"apply", "[FILE|-]", "put an array of records into the store, all or none", []string{"data", "v"}, (*call).apply},
		{"dump", "", "print the store as an array of records, which is a seed", []string{"data", "salvage", "v"}, (*call).dump},
		{"check", "", "read the data file, tell what is there and change nothing", []string{"data"}, (*call).check},
		{"openapi", "", "print openapi.json", nil, (*call).openapi},
		{"health", "", "exit 0 if the server with the same flags and environment answers", serverFlags, (*call).health},
		{"version", "", "print the version", nil, (*call).version},
		{"help", "[SUBCOMMAND]", "explain eventsd or a subcommand", nil, (*call).help},
	}
}

// define declares the flags with these names, each with =VALUE behind it where
// its default is another one than usual.
func (o *options) define(fs *flag.FlagSet, names []string) {
	for _, name := range names {
		name, value, _ := strings.Cut(name, "=")
		switch name {
		case "addr":
			fs.StringVar(&o.addr, name, cmp.Or(value, "127.0.0.1:8080"), "`HOST:PORT` to listen on; port 0 is any free one")
		case "data":
			fs.StringVar(&o.data, name, "events.json", "the data `FILE`, made where there is none")
		case "memory":
			fs.BoolVar(&o.memory, name, false, "keep everything in memory, without a file")
		case "seed":
			fs.StringVar(&o.seed, name, "", "`FILE` with an array of records for a store that is empty")
		case "first-key":
			fs.BoolVar(&o.firstKey, name, true, "make a user and a key, and show the key, where the store has no key")
		case "new-event-status":
			fs.StringVar(&o.status, name, "published", "`STATUS` of a new event: draft or published")
		case "ready-file":
			fs.StringVar(&o.readyFile, name, "", "`FILE` for the ready lines as JSON, removed at the end")
		case "log":
			fs.StringVar(&o.log, name, "text", "`FORMAT` of the log on stderr: text or json")
		case "v":
			fs.BoolVar(&o.verbose, name, false, "say more: a line a request, or which store is used")
		case "name":
			fs.StringVar(&o.name, name, "", "`NAME` of the user where the email is new")
		case "email":
			fs.StringVar(&o.email, name, "", "`EMAIL` of the user")
		case "user":
			fs.StringVar(&o.user, name, "", "`ID` of a user that is there")
		case "json":
			fs.BoolVar(&o.json, name, false, "print JSON")
		case "time":
			fs.StringVar(&o.start, name, double.Start.Format(time.RFC3339), "`TIME` at which the clock stands at the start, in RFC 3339")
		case "control-token":
			fs.StringVar(&o.token, name, "", "`TOKEN` of the control API; made where there is none")
		case "salvage":
			fs.BoolVar(&o.salvage, name, false, "print what can still be read of a damaged data file")
		}
	}
}

func variable(flag string) string {
	return "EVENTSD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

func (c *call) run(args []string) error {
	sub, rest := subcommands()[0], args
	if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		return c.help()
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		i := slices.IndexFunc(subcommands(), func(s subcommand) bool {
			words := strings.Fields(s.name)
			return len(args) >= len(words) && slices.Equal(words, args[:len(words)])
		})
		if i < 0 {
			return fmt.Errorf("unknown subcommand %q; see eventsd help", strings.Join(args[:min(2, len(args))], " "))
		}
		sub = subcommands()[i]
		rest = args[len(strings.Fields(sub.name)):]
	}
	fs := flag.NewFlagSet(sub.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	c.opt.define(fs, sub.flags)
	if err := fs.Parse(rest); errors.Is(err, flag.ErrHelp) {
		return c.explain(sub)
	} else if err != nil {
		return fmt.Errorf("%w; see eventsd help %s", err, sub.name)
	}
	c.args, c.given = fs.Args(), map[string]bool{}
	if len(c.args) > 0 && sub.args == "" {
		return fmt.Errorf("unexpected argument %q; see eventsd help %s", c.args[0], sub.name)
	}
	fs.Visit(func(f *flag.Flag) { c.given[f.Name] = true })
	var bad error
	fs.VisitAll(func(f *flag.Flag) {
		if value := c.getenv(variable(f.Name)); value != "" && !c.given[f.Name] && bad == nil {
			if err := fs.Set(f.Name, value); err != nil {
				bad = fmt.Errorf("invalid value %q of %s: %w", value, variable(f.Name), err)
			}
		}
	})
	if bad != nil {
		return bad
	}
	defer func() {
		if c.ready != nil {
			c.ready.Close()
			os.Remove(c.ready.Name()) // unless it is the ready file by now
		}
	}()
	return sub.run(c)
}

func (c *call) help() error {
	if len(c.args) > 0 {
		for _, s := range subcommands() {
			if s.name == strings.Join(c.args, " ") {
				return c.explain(s)
			}
		}
		return fmt.Errorf("there is no subcommand %q; see eventsd help", strings.Join(c.args, " "))
	}
	fmt.Fprint(c.stdout, "eventsd serves the public REST API of an events networking service.\n\nUsage: eventsd [SUBCOMMAND] [FLAGS]\n\n")
	for _, s := range subcommands() {
		fmt.Fprintf(c.stdout, "  %-12s %s\n", s.name, s.summary)
	}
	fmt.Fprint(c.stdout, "\nSee eventsd help SUBCOMMAND for its flags. Each flag can also be set in the\nenvironment, -data as EVENTSD_DATA and so on; the flag wins.\n")
	return nil
}

func (c *call) explain(s subcommand) error {
	fmt.Fprintf(c.stdout, "eventsd %s: %s\n\nUsage: %s\n", s.name, s.summary, strings.Join(strings.Fields("eventsd "+s.name+" [FLAGS] "+s.args), " "))
	fs := flag.NewFlagSet(s.name, flag.ContinueOnError)
	new(options).define(fs, s.flags)
	fs.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(c.stdout, "  %-24s %s; %s\n", strings.TrimSpace("-"+f.Name+" "+value), usage, variable(f.Name))
	})
	return nil
}

func (c *call) openapi() error {
	_, err := c.stdout.Write(openAPI)
	return err
}

// version is set by the linker where the build knows no tag:
// -ldflags "-X example.com/events.version=v1.2.3".
var version string

func (c *call) version() error {
	module, stamped := "example.com/events", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		module, stamped = info.Main.Path, info.Main.Version
	}
	fmt.Fprintf(c.stdout, "eventsd %s %s %s %s/%s\n", module, cmp.Or(version, stamped, "(devel)"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// config checks the options of a server and makes its logger.
func (c *call) config() (*Config, error) {
	o := &slog.HandlerOptions{}
	if c.opt.verbose {
		o.Level = slog.LevelDebug
	}
	var h slog.Handler
	switch c.opt.log {
	case "text":
		h = slog.NewTextHandler(c.stderr, o)
	case "json":
		h = slog.NewJSONHandler(c.stderr, o)
	default:
		return nil, fmt.Errorf("-log must be text or json, not %q", c.opt.log)
	}
	if c.opt.status != "draft" && c.opt.status != "published" {
		return nil, fmt.Errorf("-new-event-status must be draft or published, not %q", c.opt.status)
	}
	if c.opt.memory && c.given["memory"] && c.given["data"] {
		return nil, errors.New("-memory and -data exclude each other; give one of them")
	}
	if c.given["data"] && !c.given["memory"] {
		c.opt.memory = false // the flag wins over EVENTSD_MEMORY
	}
	return &Config{Logger: slog.New(h), NewEventStatus: c.opt.status}, nil
}

func (c *call) demo() error {
	c.opt.memory, c.opt.status = true, "published"
	cfg, err := c.config()
	if err != nil {
		return err
	}
	l, err := c.listen(cfg.Logger)
	if err != nil {
		return err
	}
	store := NewStore(cfg)
	if err := store.ApplyJSON(demoSeed); err != nil {
		return err
	}
	return c.serveStore(l, store, cfg.Logger, demoKey)
}

func (c *call) serve() error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	l, err := c.listen(cfg.Logger) // before the store: a key must not be made for a server that cannot start
	if err != nil {
		return err
	}
	store, key, err := c.open(cfg)
	if err != nil {
		l.Close()
		return err
	}
	return c.serveStore(l, store, cfg.Logger, key)
}

// open opens the store that the options name, with its seed and its first key.
func (c *call) open(cfg *Config) (store *Store, key string, err error) {
	if c.opt.memory {
		store = NewStore(cfg)
	} else if store, err = open(c.opt.data, cfg, c.progress("reading "+c.opt.data)); err != nil {
		return nil, "", err
	}
	if err := c.ctx.Err(); err != nil {
		return nil, "", errors.Join(err, store.Close())
	}
	if key, err = c.fill(store, cfg.Logger); err != nil {
		return nil, "", errors.Join(err, store.Close())
	}
	return store, key, nil
}

// dataFlag is what an operator command needs to find this data file.
func (c *call) dataFlag() string {
	if c.opt.data == "events.json" {
		return ""
	}
	return " -data " + c.opt.data
}

func (c *call) fill(store *Store, logger *slog.Logger) (key string, err error) {
	if c.opt.seed != "" && !store.empty() {
		logger.Info("the seed was skipped, as the store has data already", "seed", c.opt.seed)
	} else if c.opt.seed != "" {
		if err := c.applySeed(store); err != nil {
			return "", err
		}
	}
	first := store.firstKeyOwner()
	switch {
	case first != nil && store.locked():
		logger.Warn("every key is revoked; make one with: eventsd key issue"+c.dataFlag()+" -user "+first.ID, "name", first.Name, "email", first.Email)
		return "", nil
	case first != nil:
		logger.Info("this owner has a key; another one: eventsd key issue"+c.dataFlag()+" -user "+first.ID, "name", first.Name, "email", first.Email)
		return "", nil
	case c.opt.seed != "":
		logger.Info("the store has no key after the seed", "seed", c.opt.seed)
	}
	if !c.opt.firstKey {
		logger.Info("the store has no key yet; make one with: eventsd key issue" + c.dataFlag() + " -name NAME -email EMAIL")
		return "", nil
	}
	key, _, err = store.issueKey(owner{name: "Local Owner", email: "owner@localhost.example"})
	return key, err
}

func (c *call) applySeed(store *Store) error {
	seed, err := os.ReadFile(c.opt.seed)
	if err != nil {
		return fmt.Errorf("the seed: %w", err)
	}
	if err := store.ApplyJSON(seed); err != nil {
		return fmt.Errorf("the seed %s: %w", c.opt.seed, err)
	}
	return nil
}

// progress returns what tells, on a terminal, how far a long work is: done of
// total, or of nobody knows how much where total is 0. Nil elsewhere.
func (c *call) progress(what string) func(done, total int64) {
	f, ok := c.stderr.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	last := time.Now()
	return func(done, total int64) {
		if done == total && total > 0 {
			fmt.Fprint(f, "\r\033[K")
		} else if time.Since(last) > 200*time.Millisecond {
			last = time.Now()
			if total > 0 {
				fmt.Fprintf(f, "\r%s: %d %%", what, 100*done/total)
			} else {
				fmt.Fprintf(f, "\r%s: %d", what, done)
			}
		}
	}
}

// listen is the first thing that a server does: all that can go wrong before a
// key is made and shown.
func (c *call) listen(logger *slog.Logger) (net.Listener, error) {
	ctx, stop := signal.NotifyContext(c.ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	c.ctx = ctx
	if file := c.opt.readyFile; file != "" {
		os.Remove(file) // one of an earlier server
		ready, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.tmp")
		if err != nil {
			return nil, fmt.Errorf("-ready-file: %w", err)
		}
		c.ready = ready
	}
	l, err := net.Listen("tcp", c.opt.addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("the address %s is taken; stop what uses it, or give another with -addr", c.opt.addr)
		}
		return nil, fmt.Errorf("-addr %q: %w; give HOST:PORT", c.opt.addr, err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		logger.Info("the address is not loopback: others reach this server; put TLS and rate limits in front of it", "addr", l.Addr().String())
	}
	return l, nil
}

// double serves a test double, with the control API beside it.
func (c *call) double() error {
	c.opt.status = "published"
	cfg, err := c.config()
	if err != nil {
		return err
	}
	start, err := strict.Time(c.opt.start)
	if err != nil {
		return fmt.Errorf("-time %w", err)
	}
	token := cmp.Or(c.opt.token, rand.Text())
	if !form.Visible(token) {
		return errors.New("-control-token must have visible ASCII characters only")
	}
	l, err := c.listen(cfg.Logger)
	if err != nil {
		return err
	}
	d := double.New(BasePath, Operations(), start)
	d.Unknown = func(method, path, nearest string) {
		cfg.Logger.Warn("the API has no such route", "method", method, "path", path, "nearest", nearest)
	}
	cfg.Now, cfg.NewID, cfg.Intercept = d.Now, d.NewID, d.Intercept
	store := NewStore(cfg)
	key, err := d.Begin(store, func() error {
		if c.opt.seed == "" {
			return nil
		}
		return c.applySeed(store)
	})
	if err != nil {
		l.Close()
		return err
	}
	url := "http://" + hostPort(l.Addr().String(), "localhost")
	ready := readiness{BaseURL: url + BasePath, Key: key, ControlURL: url + double.ControlPath, ControlToken: token, PID: os.Getpid()}
	ready.Ready = fmt.Sprintf(`curl -H 'Authorization: Bearer %s' -d '{"name":"Grace"}' %s/keys`, token, ready.ControlURL)
	api := newAPI(store)
	api.public = api.publicRoutes()
	noted, control := d.Handler(c.logged(api, cfg.Logger)), d.Control(token, ready.BaseURL, api.fail)
	srv := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path+"/", double.ControlPath+"/"):
			control.ServeHTTP(w, r)
		case api.public[r.URL.Path] != nil:
			api.ServeHTTP(w, r)
		default:
			noted.ServeHTTP(w, r)
		}
	}), cfg.Logger)
	srv.WriteTimeout = 0 // a fault may hold a request for longer
	srv.RegisterOnShutdown(d.Close)
	return c.serveAll([]*http.Server{srv}, []net.Listener{l}, store, ready, cfg.Logger)
}

// serveStore tells what is there, serves until it is told to stop, and closes
// the store.
func (c *call) serveStore(l net.Listener, store *Store, logger *slog.Logger, key string) error {
	base := "http://" + hostPort(l.Addr().String(), "localhost") + BasePath
	ready := readiness{BaseURL: base, Key: key, Data: "memory", Operator: "off (memory)", PID: os.Getpid()}
	api := newAPI(store)
	api.public = api.publicRoutes()
	servers := []*http.Server{newServer(c.logged(api, logger), logger)}
	listeners := []net.Listener{l}
	if store.file != nil {
		ready.Data = store.file.Path()
		ready.Operator = store.file.Path() + ".sock"
		socket, err := listenOperator(ready.Operator)
		if err != nil {
			ready.Operator = "off (" + err.Error() + ")"
		} else {
			listeners = append(listeners, socket)
			servers = append(servers, newServer(operator.Handler("", operator.StoreRoutes(store, base), api.fail), logger))
		}
	}
	ready.Ready = fmt.Sprintf(`curl -H "x-service-api-key: $KEY" %s/events`, base)
	if key != "" {
		ready.Ready = fmt.Sprintf(`curl -H 'x-service-api-key: %s' -H 'Content-Type: application/json' -d '{"title":"Hello","start_at":"2030-01-01T18:00:00Z","end_at":"2030-01-01T20:00:00Z"}' %s/events/create`, key, base)
	}
	if key == demoKey {
		ready.Ready = fmt.Sprintf("curl -H 'x-service-api-key: %s' %s/events", key, base)
	}
	return c.serveAll(servers, listeners, store, ready, logger)
}

// serveAll tells that it is ready, serves until it is told to stop, and closes
// the store.
func (c *call) serveAll(servers []*http.Server, listeners []net.Listener, store *Store, ready readiness, logger *slog.Logger) error {
	err := serveUntil(c.ctx, servers, listeners, func() error { return c.tell(ready) })
	if c.opt.readyFile != "" {
		os.Remove(c.opt.readyFile)
	}
	if unwritable := store.Err(); unwritable != nil {
		store.Close()
		return &failure{unwritable.Error()}
	}
	if err := errors.Join(err, store.Close()); err != nil {
		return &failure{err.Error()}
	}
	logger.Info("stopped")
	return nil
}

// serveUntil serves until ctx is done or a server fails, then takes no more and
// finishes what runs. It calls ready once it serves.
func serveUntil(ctx context.Context, servers []*http.Server, listeners []net.Listener, ready func() error) error {
	var serving sync.WaitGroup
	failed := make(chan error, len(servers)+1)
	for i, srv := range servers {
		serving.Go(func() {
			if err := srv.Serve(listeners[i]); err != http.ErrServerClosed {
				failed <- err
			}
		})
	}
	if err := ready(); err != nil {
		failed <- err
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for _, srv := range servers {
		if srv.Shutdown(finish) != nil {
			srv.Close()
		}
	}
	serving.Wait()
	return err
}

const maxSocketPath = 103 // bytes, with the NUL behind them: the least of the systems

// listenOperator makes the operator's socket. The caller holds the lock of the
// data file, so a socket that is there already is of a process that is gone.
func listenOperator(path string) (net.Listener, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("not on Windows")
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of the socket is longer than %d bytes", maxSocketPath)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func newServer(h http.Handler, logger *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeader,
		ErrorLog:                     log.New(quoted{logger}, "", 0),
		Protocols:                    protocols,
	}
}

// quoted puts what net/http logs, which can hold raw input, into one attribute.
type quoted struct{ logger *slog.Logger }

func (q quoted) Write(p []byte) (int, error) {
	q.logger.Warn("http", "message", strings.TrimSpace(string(p)))
	return len(p), nil
}

// logged logs a line a request with -v: never a key, a query or a body.
func (c *call) logged(h http.Handler, logger *slog.Logger) http.Handler {
	if !c.opt.verbose {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		seen := &statusWriter{ResponseWriter: w}
		defer func() {
			logger.Debug("request", "method", r.Method, "path", r.URL.Path, "route", r.Pattern, "status", seen.status, "took", time.Since(start))
		}()
		h.ServeHTTP(seen, r)
	})
}

type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// readiness is what a server tells when it is ready: line by line on stdout,
// and as a JSON object in the ready file.
type readiness struct {
	BaseURL      string `json:"base_url"`
	Key          string `json:"api_key,omitempty"`
	Data         string `json:"data,omitempty"`
	Operator     string `json:"operator,omitempty"`
	ControlURL   string `json:"control_url,omitempty"`
	ControlToken string `json:"control_token,omitempty"`
	Ready        string `json:"ready"`
	PID          int    `json:"pid"`
}

func (c *call) tell(r readiness) error {
	for _, line := range [][2]string{{"base_url", r.BaseURL}, {"api_key", r.Key}, {"data", r.Data}, {"operator", r.Operator},
		{"control_url", r.ControlURL}, {"control_token", r.ControlToken}, {"ready", r.Ready}} {
		if line[1] == "" {
			continue
		}
		if line[0] == "ready" && c.ready != nil { // a key is shown by now, and the file is there with the last line
			_, err := c.ready.WriteString(strict.Encode(r) + "\n")
			if err = errors.Join(err, c.ready.Close()); err == nil {
				err = os.Rename(c.ready.Name(), c.opt.readyFile)
			}
			if err != nil {
				return fmt.Errorf("-ready-file: %w", err)
			}
		}
		if _, err := fmt.Fprintf(c.stdout, "%s: %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	return nil
}

// hostPort is an address that a client can use, with local for a wildcard.
func hostPort(addr, local string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort(local, port)
	}
	return addr
}

// operate opens what the operator works on: the running server through its
// socket, else the data file itself, to be closed. It makes a new data file only
// for what puts something in.
func (c *call) operate(create bool) (operator.Store, func() error, error) {
	socket := socketOf(c.opt.data)
	running, err := operator.Dial(socket)
	if err == nil {
		c.say("using the running server at " + socket)
		return running, func() error { return nil }, nil
	}
	_, statErr := os.Stat(c.opt.data)
	if statErr != nil && !create {
		return nil, nil, fmt.Errorf("%w; give the -data of the server", statErr)
	}
	store, err := open(c.opt.data, &Config{Logger: slog.New(slog.NewTextHandler(c.stderr, nil))}, c.progress("reading "+c.opt.data))
	if err != nil {
		return nil, nil, err
	}
	if errors.Is(statErr, os.ErrNotExist) {
		fmt.Fprintln(c.stderr, "eventsd: made a new data file "+store.file.Path())
	}
	c.say("using the data file " + store.file.Path())
	return store, store.Close, nil
}

func (c *call) say(what string) {
	if c.opt.verbose {
		fmt.Fprintln(c.stderr, "eventsd: "+what)
	}
}

// socketOf is the operator's socket beside a data file.
func socketOf(data string) string {
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	return data + ".sock"
}

// withStore runs f on what the operator works on.
func (c *call) withStore(create bool, f func(operator.Store) error) error {
	store, closeStore, err := c.operate(create)
	if err != nil {
		return err
	}
	err = f(store)
	if err = errors.Join(err, closeStore()); errors.Is(err, ErrNotWritten) {
		return &failure{err.Error()}
	}
	if failed, ok := errors.AsType[*operator.ServerError](err); ok {
		return &failure{failed.Error()}
	}
	return err
}

func (c *call) keyIssue() error {
	if (c.opt.user == "") == (c.opt.email == "") {
		return errors.New("key issue takes -user ID, or -email EMAIL and, where that is new, -name NAME")
	}
	return c.withStore(c.opt.email != "", func(store operator.Store) error {
		answer, err := store.IssueKeyJSON([]byte(strict.Encode(map[string]string{"user_id": c.opt.user, "name": c.opt.name, "email": c.opt.email})))
		if err != nil {
			return err
		}
		var key struct{ ID, Key, User string }
		mustDecode(string(answer), &key)
		fmt.Fprintf(c.stderr, "eventsd: issued %s for %s; the secret is shown this once\n", key.ID, key.User)
		_, err = fmt.Fprintln(c.stdout, key.Key)
		return err
	})
}

func (c *call) keyList() error {
	return c.withStore(false, func(store operator.Store) error {
		raw, err := store.KeysJSON()
		if err != nil {
			return err
		}
		if c.opt.json {
			_, err = fmt.Fprintf(c.stdout, "%s\n", raw)
			return err
		}
		var keys []listedKey
		mustDecode(string(raw), &keys)
		tw := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "ID\tUSER\tNAME\tEMAIL\tHINT\tCREATED\tREVOKED")
		for _, k := range keys {
			hint, revoked := "-", "-"
			if k.Hint != nil {
				hint = "…" + printable(*k.Hint)
			}
			if k.RevokedAt != nil {
				revoked = k.RevokedAt.Format(time.RFC3339)
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.UserID, printable(k.Name), printable(k.Email), hint, k.CreatedAt.Format(time.RFC3339), revoked)
		}
		return tw.Flush()
	})
}

// printable is s without what would move a terminal's cursor or a column.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func (c *call) keyRevoke() error {
	if len(c.args) != 1 {
		return errors.New("key revoke takes one ID behind its flags: key_…, as eventsd key list shows it")
	}
	return c.withStore(false, func(store operator.Store) error { return store.RevokeKey(c.args[0]) })
}

func (c *call) apply() error {
	if len(c.args) > 1 {
		return errors.New("apply takes one FILE behind its flags, or - for standard input")
	}
	var records []byte
	var err error
	if len(c.args) == 0 || c.args[0] == "-" {
		records, err = io.ReadAll(c.stdin)
	} else {
		records, err = os.ReadFile(c.args[0])
	}
	if err != nil {
		return err
	}
	return c.withStore(true, func(store operator.Store) error { return store.ApplyJSON(records) })
}

func (c *call) dump() error {
	if c.opt.salvage {
		return c.salvage()
	}
	return c.withStore(false, func(store operator.Store) error {
		records, err := store.RecordsJSON()
		if err == nil {
			_, err = c.stdout.Write(records)
		}
		return err
	})
}

// check reads the data file and changes nothing.
func (c *call) check() error {
	s := newStore(nil)
	l := loader{s: s}
	report, err := recordfile.Read(c.opt.data, s.fileOptions(c.progress("reading "+c.opt.data)), l.load)
	if err != nil {
		return &failure{err.Error()}
	}
	count := map[string]int{}
	for r := range s.index.All() {
		count[record.Kinds[r.Kind()]]++
	}
	fmt.Fprintf(c.stdout, "file: %s\nbytes: %d\nlines: %d\ncommits: %d to %d, the snapshot up to %d\n", c.opt.data, report.Size, report.Lines, report.First, report.Last, report.Snap)
	fmt.Fprintf(c.stdout, "users: %d\nkeys: %d\nevents: %d\nguests: %d\n", count["user"], count["key"], count["event"], count["guest"])
	fmt.Fprintf(c.stdout, "found: %s\n", cmp.Or(report.Repair, "clean"))
	return nil
}

// salvage prints the records of every line that verifies, as far as they can
// be put together, and tells on stderr what was skipped.
func (c *call) salvage() error {
	between := "[\n" // with the first record: what is empty must not look like a seed
	report, err := recordfile.Salvage(c.opt.data, newStore(nil).fileOptions(nil), func(_ uint64, records string) error {
		for text := range record.Split(records) {
			if _, err := fmt.Fprint(c.stdout, between, record.Plain(text)); err != nil {
				return err
			}
			between = ",\n"
		}
		return nil
	})
	if between == ",\n" {
		fmt.Fprint(c.stdout, "\n]\n")
	}
	for _, skipped := range report.Skipped {
		fmt.Fprintf(c.stderr, "eventsd: skipped line %d at byte %d, %d bytes: %s\n", skipped.Line, skipped.Offset, skipped.Bytes, skipped.Why)
	}
	return err
}

// health asks the server that the same flags and environment would start.
func (c *call) health() error {
	addr := c.opt.addr
	if file, err := os.ReadFile(c.opt.readyFile); err == nil && strings.HasSuffix(addr, ":0") { // it knows the port
		var r readiness
		if json.Unmarshal(file, &r) == nil {
			addr = strings.TrimSuffix(strings.TrimPrefix(r.BaseURL, "http://"), BasePath)
		}
	}
	addr = hostPort(addr, "127.0.0.1")
	if port, local := strings.CutPrefix(addr, "localhost:"); local {
		addr = "127.0.0.1:" + port // an empty root has no hosts file
	}
	url := "http://" + addr
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}} // by no proxy
	resp, err := client.Get(url + "/healthz")
	if err != nil {
		return &failure{fmt.Sprintf("no answer from %s: %v", url, errors.Unwrap(err))}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &failure{fmt.Sprintf("%s answered %s: it cannot write", url, resp.Status)}
	}
	fmt.Fprintln(c.stdout, "ok")
	return nil
}
