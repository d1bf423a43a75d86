package events

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/command"
	"example.com/events/internal/double"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/rows"
	"example.com/events/internal/serve"
	"example.com/events/internal/strict"
)

//go:embed internal/demo.json
var demoSeed []byte

// demoKey is in demoSeed.
const demoKey = "svc_live_demo"

// Run is the command eventsd: it does what args ask for, which do not hold the
// program's name, and returns the exit status. Flags that are not given are
// read from getenv, -new-event-status from EVENTSD_NEW_EVENT_STATUS and so on.
// A server stops when ctx is done, or at SIGINT or SIGTERM. The status is 0; or 2
// for what was refused, a mistake or a file, and 1 for what failed or was found:
// a file that could not be written, damage that check found, a server that is
// not well. Both are told in one line on stderr.
func Run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &call{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	c.program = command.Program{Name: "eventsd", About: "eventsd serves the public REST API of an events networking service.",
		Commands: c.commands(), Flags: c.opt.flags(), Stdout: stdout}
	err := c.program.Run(args, getenv)
	c.ready.Remove()                                    // also after a start that failed
	if err == nil || errors.Is(err, context.Canceled) { // it was told to stop
		return 0
	}
	fmt.Fprintln(stderr, "eventsd: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	if _, failed := errors.AsType[failure](err); failed {
		return 1
	}
	return 2
}

// failure ends the command with status 1.
type failure struct{ error }

// call is one run of the command.
type call struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	opt            options
	program        command.Program
	logger         *slog.Logger // of a server
	ready          *serve.ReadyFile
}

type options struct {
	addr, data, seed, status, readyFile, log string
	memory, firstKey, verbose, salvage, json bool
	name, email, user                        string
	start, token                             string
}

var serverFlags = []string{"addr", "data", "memory", "seed", "first-key", "new-event-status", "ready-file", "log", "v"}

func (c *call) commands() []command.Command {
	return []command.Command{
		{Name: "serve", Summary: "serve the API; also without a subcommand", Flags: serverFlags, Run: c.serve},
		{Name: "demo", Summary: "serve a built-in example from memory, with a curl line to try", Flags: []string{"addr", "ready-file", "log", "v"}, Run: c.demo},
		{Name: "double", Summary: "serve a test double from memory, steered by a control API", Run: c.double,
			Flags: []string{"addr=127.0.0.1:0", "seed", "time", "control-token", "ready-file", "log", "v"}},
		{Name: "key issue", Summary: "make an API key for a user and print it: it is shown this once", Flags: []string{"data", "name", "email", "user", "v"}, Run: c.keyIssue},
		{Name: "key list", Summary: "list the keys, without their secrets", Flags: []string{"data", "json", "v"}, Run: c.keyList},
		{Name: "key revoke", Args: "ID", Summary: "end a key for good", Flags: []string{"data", "v"}, Run: c.keyRevoke},
		{Name: "apply", Args: "[FILE|-]", Summary: "put an array of records into the store, all or none", Flags: []string{"data", "v"}, Run: c.apply},
		{Name: "dump", Summary: "print the store as an array of records, which is a seed", Flags: []string{"data", "salvage", "v"}, Run: c.dump},
		{Name: "check", Summary: "read the data file, tell what is there and change nothing", Flags: []string{"data"}, Run: c.check},
		{Name: "openapi", Summary: "print openapi.json", Run: c.openapi},
		{Name: "health", Summary: "exit 0 if the server with the same flags and environment answers", Flags: serverFlags, Run: c.health},
		{Name: "version", Summary: "print the version", Run: c.version},
	}
}

func (o *options) flags() map[string]command.Flag {
	return map[string]command.Flag{
		"addr":             command.String(&o.addr, "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 is any free one"),
		"data":             command.String(&o.data, "events.json", "the data `FILE`"),
		"memory":           command.Bool(&o.memory, false, "keep everything in memory, without a file"),
		"seed":             command.String(&o.seed, "", "`FILE` with an array of records for a store that is empty"),
		"first-key":        command.Bool(&o.firstKey, true, "make a user and a key, and show the key, where the store has no key"),
		"new-event-status": command.String(&o.status, "published", "`STATUS` of a new event: draft or published"),
		"ready-file":       command.String(&o.readyFile, "", "`FILE` for the ready lines as JSON, removed at the end"),
		"log":              command.String(&o.log, "text", "`FORMAT` of the log on stderr: text or json"),
		"v":                command.Bool(&o.verbose, false, "say more: a line a request, or which store is used"),
		"name":             command.String(&o.name, "", "`NAME` of the user where the email is new"),
		"email":            command.String(&o.email, "", "`EMAIL` of the user"),
		"user":             command.String(&o.user, "", "`ID` of a user that is there"),
		"json":             command.Bool(&o.json, false, "print JSON"),
		"time":             command.String(&o.start, double.Start.Format(time.RFC3339), "`TIME` at which the clock stands at the start, in RFC 3339"),
		"control-token":    command.String(&o.token, "", "`TOKEN` of the control API; made where there is none"),
		"salvage":          command.Bool(&o.salvage, false, "print what can still be read of a damaged data file"),
	}
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
	ready, _ := filepath.Abs(c.opt.readyFile)
	if data, _ := filepath.Abs(c.opt.data); c.opt.readyFile != "" && ready == data {
		return nil, errors.New("-ready-file must be a file of its own, not that of -data: it is removed at the end")
	}
	if c.opt.memory && c.program.Given["memory"] && c.program.Given["data"] {
		return nil, errors.New("-memory and -data exclude each other; give one of them")
	}
	if c.program.Given["data"] && !c.program.Given["memory"] {
		c.opt.memory = false // the flag wins over EVENTSD_MEMORY
	}
	c.logger = slog.New(h)
	return &Config{Logger: c.logger, NewEventStatus: c.opt.status}, nil
}

func (c *call) serve() error {
	return c.host(c.open, func(base, key string) string {
		if key == "" {
			return fmt.Sprintf(`curl -H "x-service-api-key: $KEY" %s/events`, base)
		}
		return fmt.Sprintf(`curl -H 'x-service-api-key: %s' -H 'Content-Type: application/json' -d '{"title":"Hello","start_at":"2030-01-01T18:00:00Z","end_at":"2030-01-01T20:00:00Z"}' %s/events/create`, key, base)
	})
}

func (c *call) demo() error {
	c.opt.memory, c.opt.status = true, "published"
	open := func(cfg *Config) (*Store, string, error) {
		store := NewStore(cfg)
		return store, demoKey, store.ApplyJSON(demoSeed)
	}
	return c.host(open, func(base, key string) string {
		return fmt.Sprintf("curl -H 'x-service-api-key: %s' %s/events", key, base)
	})
}

// host serves the store that open returns with a key to show, and a curl line for
// them to paste. It listens first: a key must not be made for a server that cannot
// start.
func (c *call) host(open func(*Config) (store *Store, key string, err error), curl func(base, key string) string) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	l, err := c.listen()
	if err != nil {
		return err
	}
	store, key, err := open(cfg)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return c.serveStore(l, store, key, curl)
}

// open opens the store that the options name, with its seed and its first key.
func (c *call) open(cfg *Config) (store *Store, key string, err error) {
	isNew := false
	if c.opt.memory {
		store = NewStore(cfg)
	} else if store, isNew, err = c.openFile(cfg); err != nil {
		return nil, "", err
	}
	if err = c.ctx.Err(); err == nil {
		key, err = c.fill(store)
	}
	if err != nil {
		return nil, "", errors.Join(err, closeStore(store, isNew))
	}
	if isNew {
		c.logger.Info("made a new data file", "data", store.path())
	}
	return store, key, nil
}

func (c *call) openFile(cfg *Config) (store *Store, isNew bool, err error) {
	_, err = os.Stat(c.opt.data)
	isNew = errors.Is(err, os.ErrNotExist)
	store, err = Open(c.opt.data, cfg)
	return store, isNew, err
}

// closeStore closes a store. A new one into which nothing went leaves no file.
func closeStore(store *Store, isNew bool) error {
	if isNew && store.empty() {
		os.Remove(store.path()) // while its lock is ours
	}
	return store.Close()
}

// issueHint is how to make a key for whom, an owner's flags.
func (c *call) issueHint(whom string) string {
	data := ""
	switch {
	case c.opt.memory:
		return "a record of the -seed, as no command reaches what is in memory"
	case strings.ContainsAny(c.opt.data, " '\"\\$&;()<>|*?`"):
		data = "-data '" + strings.ReplaceAll(c.opt.data, "'", `'\''`) + "' "
	case c.opt.data != "events.json":
		data = "-data " + c.opt.data + " "
	}
	return "eventsd key issue " + data + whom
}

func (c *call) fill(store *Store) (key string, err error) {
	if c.opt.seed != "" && !store.empty() {
		c.logger.Warn("the seed was skipped, as the store has data already: it needs a new -data", "seed", c.opt.seed)
	} else if c.opt.seed != "" {
		if err := c.applySeed(store); err != nil {
			return "", err
		}
	}
	state, err := store.firstKey("", c.opt.firstKey)
	first := &state.Owner
	switch {
	case err != nil:
		return "", err
	case state.Good:
		c.logger.Info("this owner has a key; another one: "+c.issueHint("-user "+first.ID), "name", first.Name, "email", first.Email)
		return "", nil
	case state.Exists:
		c.logger.Warn("every key is revoked; a new one: "+c.issueHint("-user "+first.ID), "name", first.Name, "email", first.Email)
		return "", nil
	case c.opt.seed != "":
		c.logger.Info("the store has no key after the seed", "seed", c.opt.seed)
	}
	if state.Secret == "" {
		c.logger.Info("the store has no key yet; the first one: " + c.issueHint("-name NAME -email EMAIL"))
	}
	return state.Secret, nil
}

func (c *call) applySeed(store *Store) error {
	seed, err := readRecords(c.opt.seed)
	if err != nil {
		return fmt.Errorf("the seed: %w", err)
	}
	if _, err := store.applySeed(seed); err != nil {
		return fmt.Errorf("the seed %s: %w", c.opt.seed, err)
	}
	return nil
}

// readRecords reads an array of records, which a data file is not.
func readRecords(path string) ([]byte, error) {
	records, err := os.ReadFile(path)
	if err == nil && rows.IsDataFile(records) {
		err = fmt.Errorf("%s is a data file, not an array of records; -data takes it, and eventsd dump makes an array of it", path)
	}
	return records, err
}

// listen is the first thing that a server does: all that can go wrong before a
// key is made and shown.
func (c *call) listen() (net.Listener, error) {
	ctx, stop := signal.NotifyContext(c.ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	c.ctx = ctx
	if c.opt.readyFile != "" {
		ready, err := serve.NewReadyFile(c.opt.readyFile)
		if err != nil {
			return nil, err
		}
		c.ready = ready
	}
	return serve.Listen(c.opt.addr, c.logger)
}

//go:embed internal/page.html
var pageHTML string

var errNotWriting = &answer.Error{Status: 503, Code: "server_error", Message: "the data file cannot be written; the log says why"}

// site is the API with the pages that the command serves beside it: outside the
// base path, without a key.
type site struct {
	*api
	pages map[string]http.HandlerFunc // by path
}

func newSite(a *api) site {
	parts := strings.Split(pageHTML, "{base}")
	return site{a, map[string]http.HandlerFunc{
		"/": func(w http.ResponseWriter, r *http.Request) {
			base := html.EscapeString("http://" + r.Host[:min(len(r.Host), 255)] + BasePath)
			if r.Header.Get("X-Forwarded-Proto") == "https" {
				base = "https" + base[len("http"):]
			}
			page := strings.Join(parts, base)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Length", strconv.Itoa(len(page)))
			io.WriteString(w, page)
		},
		"/openapi.json": func(w http.ResponseWriter, r *http.Request) {
			answer.Write(w, http.StatusOK, openAPI)
		},
		"/healthz": func(w http.ResponseWriter, r *http.Request) {
			if a.store.Err() != nil {
				a.fail(w, r, errNotWriting)
				return
			}
			answer.Write(w, http.StatusOK, `{"status":"ok"}`)
		},
	}}
}

func (s site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page := s.pages[r.URL.Path]
	if page == nil {
		s.api.ServeHTTP(w, r)
		return
	}
	begin(w, r)
	if r.Method != "GET" && r.Method != "HEAD" {
		s.fail(w, r, answer.Method(r.URL.Path, "GET, HEAD"))
		return
	}
	page(w, r)
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
	if !form.Visible(token) || strings.ContainsRune(token, '\'') {
		return errors.New("-control-token must have visible ASCII characters only, and no single quote")
	}
	l, err := c.listen()
	if err != nil {
		return err
	}
	d := double.New(BasePath, Operations(), start)
	d.Unknown = func(method, path, nearest string) {
		c.logger.Warn("the API has no such route", "method", method, "path", path, "nearest", nearest)
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
	url := serve.URL(l.Addr().String(), "localhost")
	ready := serve.Ready{BaseURL: url + BasePath, Key: key, ControlURL: url + double.ControlPath, ControlToken: token, PID: os.Getpid()}
	ready.Ready = fmt.Sprintf(`curl -H 'Authorization: Bearer %s' -d '{"name":"Grace"}' %s/keys`, token, ready.ControlURL)
	api := newSite(newAPI(store))
	plain, control := c.logged(api), c.logged(d.Control(token, ready.BaseURL, api.fail))
	noted := d.Handler(plain)
	srv := serve.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path+"/", double.ControlPath+"/"):
			control.ServeHTTP(w, r)
		case api.pages[r.URL.Path] != nil:
			plain.ServeHTTP(w, r)
		default:
			noted.ServeHTTP(w, r)
		}
	}), c.logger)
	srv.WriteTimeout = 0 // a fault may hold a request for longer
	srv.RegisterOnShutdown(d.Close)
	return c.serveAll([]*http.Server{srv}, []net.Listener{l}, store, ready)
}

// serveStore serves a store and, on a file, its operator.
func (c *call) serveStore(l net.Listener, store *Store, key string, curl func(base, key string) string) error {
	base := serve.URL(l.Addr().String(), "localhost") + BasePath
	ready := serve.Ready{BaseURL: base, Key: key, Data: "memory", Operator: "off (memory)", PID: os.Getpid()}
	api := newSite(newAPI(store))
	servers := []*http.Server{serve.New(c.logged(api), c.logger)}
	listeners := []net.Listener{l}
	if store.path() != "" {
		ready.Data = store.path()
		ready.Operator = serve.SocketPath(ready.Data)
		socket, err := serve.Socket(ready.Operator)
		if err != nil {
			ready.Operator = "off (" + err.Error() + ")"
		} else {
			listeners = append(listeners, socket)
			servers = append(servers, serve.New(c.logged(operator.Handler("", operator.StoreRoutes(store, base), api.fail)), c.logger))
		}
	}
	ready.Ready = curl(base, key)
	return c.serveAll(servers, listeners, store, ready)
}

// serveAll tells that it is ready, serves until it is told to stop, and closes
// the store.
func (c *call) serveAll(servers []*http.Server, listeners []net.Listener, store *Store, ready serve.Ready) error {
	err := serve.Until(c.ctx, servers, listeners, func() error { return ready.Tell(c.stdout, c.ready) })
	c.ready.Remove()
	if unwritable := store.Err(); unwritable != nil {
		store.Close()
		return failure{unwritable}
	}
	if err := errors.Join(err, store.Close()); err != nil {
		return failure{err}
	}
	c.logger.Info("stopped")
	return nil
}

// logged logs a line a request with -v.
func (c *call) logged(h http.Handler) http.Handler {
	if c.opt.verbose {
		return serve.Logged(h, c.logger)
	}
	return h
}

// operate opens what the operator works on: the running server through its
// socket, else the data file itself, to be closed. It makes a new data file only
// for what puts something in.
func (c *call) operate(create bool) (operator.Store, func() error, error) {
	socket := serve.SocketPath(c.opt.data)
	running, err := operator.Dial(socket)
	if err == nil {
		c.say("using the running server at " + socket)
		return running, func() error { return nil }, nil
	}
	if _, err := os.Stat(c.opt.data); err != nil && !create {
		return nil, nil, fmt.Errorf("%w; give the -data of the server", err)
	}
	store, isNew, err := c.openFile(&Config{Logger: slog.New(slog.NewTextHandler(c.stderr, nil))})
	if err != nil {
		return nil, nil, err
	}
	c.say("using the data file " + store.path())
	return store, func() error {
		if isNew && !store.empty() {
			fmt.Fprintln(c.stderr, "eventsd: made a new data file "+store.path())
		}
		return closeStore(store, isNew)
	}, nil
}

func (c *call) say(what string) {
	if c.opt.verbose {
		fmt.Fprintln(c.stderr, "eventsd: "+what)
	}
}

// withStore runs f on what the operator works on.
func (c *call) withStore(create bool, f func(operator.Store) error) error {
	store, closeStore, err := c.operate(create)
	if err != nil {
		return err
	}
	err = f(store)
	err = errors.Join(err, closeStore())
	if _, failed := errors.AsType[*operator.ServerError](err); failed || errors.Is(err, ErrNotWritten) {
		return failure{err}
	}
	return err
}

func (c *call) keyIssue() error {
	if (c.opt.user == "") == (c.opt.email == "") || c.opt.user != "" && c.opt.name != "" {
		return errors.New("key issue takes -user ID, or -email EMAIL and, where that is new, -name NAME")
	}
	return c.withStore(c.opt.email != "", func(store operator.Store) error {
		issued, err := store.IssueKeyJSON(strict.Encode(map[string]string{"user_id": c.opt.user, "name": c.opt.name, "email": c.opt.email}))
		if err != nil && c.opt.email != "" && c.opt.name == "" {
			return fmt.Errorf("%w; a new user takes -name NAME", err)
		}
		if err != nil {
			return err
		}
		var key struct{ ID, Key, User string }
		json.Unmarshal(issued, &key)
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
		json.Unmarshal(raw, &keys)
		tw := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "ID\tUSER\tNAME\tEMAIL\tHINT\tCREATED\tREVOKED")
		for _, k := range keys {
			hint, revoked := "-", "-"
			if k.Hint != nil {
				hint = "…" + command.Printable(*k.Hint)
			}
			if k.RevokedAt != nil {
				revoked = k.RevokedAt.Format(time.RFC3339)
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.UserID, command.Printable(k.Name), command.Printable(k.Email), hint, k.CreatedAt.Format(time.RFC3339), revoked)
		}
		return tw.Flush()
	})
}

func (c *call) keyRevoke() error {
	if len(c.program.Args) != 1 || form.ID("key")(c.program.Args[0]) != "" {
		return errors.New("key revoke takes one ID after its flags: key_…, as eventsd key list shows it")
	}
	return c.withStore(false, func(store operator.Store) error { return store.RevokeKey(c.program.Args[0]) })
}

func (c *call) apply() error {
	if len(c.program.Args) > 1 {
		return errors.New("apply takes one FILE after its flags, or - for standard input")
	}
	var records []byte
	var err error
	if len(c.program.Args) == 0 || c.program.Args[0] == "-" {
		records, err = io.ReadAll(c.stdin)
	} else {
		records, err = readRecords(c.program.Args[0])
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
	if _, err := os.Stat(c.opt.data); err != nil {
		return fmt.Errorf("%w; give the -data of the server", err)
	}
	report, err := check(c.opt.data)
	if errors.Is(err, ErrFormat) || errors.Is(err, os.ErrPermission) {
		return err
	}
	if err != nil {
		return failure{err}
	}
	count := report.Count
	_, err = fmt.Fprintf(c.stdout, "file: %s\nbytes: %d\nlines: %d\ncommits: %d to %d, the snapshot up to %d\nusers: %d\nkeys: %d\nevents: %d\nguests: %d\nfound: %s\n",
		c.opt.data, report.Size, report.Lines, report.First, report.Last, report.Snap, count["user"], count["key"], count["event"], count["guest"], cmp.Or(report.Repair, "clean"))
	return err
}

// salvage prints the records of every line that verifies, as far as they can
// be put together, and tells on stderr what was skipped.
func (c *call) salvage() error {
	between := "[\n" // with the first record: what is empty must not look like a seed
	report, err := rows.Salvage(c.opt.data, func(record string) error {
		if _, err := fmt.Fprint(c.stdout, between, record); err != nil {
			return err
		}
		between = ",\n"
		return nil
	})
	if between == ",\n" {
		fmt.Fprint(c.stdout, "\n]\n")
	}
	for _, skipped := range report.Skipped {
		fmt.Fprintf(c.stderr, "eventsd: skipped line %d at byte %d, %d bytes: %s\n", skipped.Line, skipped.Offset, skipped.Bytes, skipped.Why)
	}
	if len(report.Skipped) > 0 {
		fmt.Fprintln(c.stderr, "eventsd: what was printed goes into a new data file with -seed FILE; where it names a user or an event that was skipped, put that back by hand first")
	}
	return err
}

// health asks the server that the same flags and environment would start.
func (c *call) health() error {
	if err := serve.Health(c.opt.addr, c.opt.readyFile); err != nil {
		return failure{err}
	}
	fmt.Fprintln(c.stdout, "ok")
	return nil
}
