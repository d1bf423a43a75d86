package events

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/command"
	"example.com/events/internal/double"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/rows"
	"example.com/events/internal/strict"
)

//go:embed internal/demo.json
var demoSeed []byte

// demoKey is in demoSeed.
const demoKey = "svc_live_demo"

//go:embed internal/page.html
var pageHTML string

// version is set by the linker where the build knows no tag:
// -ldflags "-X example.com/events.version=v1.2.3".
var version string

// Run is the command eventsd: it does what args ask for, which do not hold the
// program's name, and returns the exit status. Flags that are not given are
// read from getenv, -new-event-status from EVENTSD_NEW_EVENT_STATUS and so on.
// A server stops when ctx is done, or at SIGINT or SIGTERM.
//
// The status is 0; 2 for what was refused, a mistake or a file; 1 for what failed
// or was found, such as a file that could not be written, damage that check
// found, a server that is not well; and after "double -- COMMAND" that of the
// command. An error is one line on stderr.
func Run(
	ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	c := &call{ctx: ctx}
	c.Program = command.Program{
		Name: "eventsd", About: "eventsd serves the public REST API of an events networking service.",
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Redact: answer.Redact,
	}
	files := operator.Files{Open: c.openForOperator, Records: readRecords, Check: check, Salvage: salvage}
	c.Commands = append(c.commands(), operator.Commands(&c.Program, files)...)
	err := c.Program.Run(args, getenv)
	if errors.Is(err, ErrNotWritten) {
		err = command.Failed(err)
	}
	return c.Exit(err)
}

// call is one run of the command.
type call struct {
	command.Program
	ctx    context.Context
	logger *slog.Logger // of a server

	addr, data, seed, status, readyFile, log string
	apiKey, start, controlToken              string
	memory, firstKey, untilEOF, verbose      bool
}

// commands are the subcommands, but for the operator's. The first of them is what
// eventsd does without a subcommand.
func (c *call) commands() []command.Command {
	return []command.Command{
		{Name: "serve", Flags: c.serveFlags, Run: c.serve,
			Summary: "serve the API; also without a subcommand"},
		{Name: "demo", Flags: c.demoFlags, Run: c.demo,
			Summary: "serve a built-in example from memory, with a curl line to try"},
		{Name: "double", Args: "[-- COMMAND ARGS]", Flags: c.doubleFlags, Run: c.double,
			Summary: "serve a test double from memory, alone or for as long as a command runs"},
		{Name: "openapi", Run: c.openapi,
			Summary: "print openapi.json"},
		{Name: "health", Flags: c.serveFlags, Run: c.health,
			Summary: "exit 0 if the server with the same flags and environment answers"},
		{Name: "version", Run: c.version,
			Summary: "print the version"},
	}
}

func (c *call) demoFlags(fs *flag.FlagSet) { c.serverFlags(fs, "127.0.0.1:8080") }

// serverFlags declares the flags of every server.
func (c *call) serverFlags(fs *flag.FlagSet, addr string) {
	fs.StringVar(&c.addr, "addr", addr, "`HOST:PORT` to listen on; port 0 is any free one")
	fs.StringVar(&c.readyFile, "ready-file", "", "`FILE` for the ready lines as JSON, removed at the end")
	fs.StringVar(&c.log, "log", "text", "`FORMAT` of the log on stderr: text or json")
	fs.BoolVar(&c.verbose, "v", false, "log a line for each request")
}

func (c *call) serveFlags(fs *flag.FlagSet) {
	c.serverFlags(fs, "127.0.0.1:8080")
	fs.StringVar(&c.data, "data", "events.json", "the data `FILE`")
	fs.BoolVar(&c.memory, "memory", false, "keep everything in memory, without a file")
	fs.StringVar(&c.seed, "seed", "", "`FILE` with an array of records for a store that is empty")
	fs.BoolVar(&c.firstKey, "first-key", true, "where the store has no key, make one and show it")
	fs.StringVar(&c.apiKey, "api-key", "", "`SECRET` of the first key, in place of a random one")
	fs.StringVar(&c.status, "new-event-status", "published", "`STATUS` of a new event: draft or published")
}

func (c *call) doubleFlags(fs *flag.FlagSet) {
	c.serverFlags(fs, "127.0.0.1:0")
	start := double.Start.Format(time.RFC3339)
	fs.StringVar(&c.seed, "seed", "", "`FILE` with an array of records to begin with")
	fs.StringVar(&c.start, "time", start, "`TIME` at which the clock stands at the start, in RFC 3339")
	fs.StringVar(&c.apiKey, "api-key", "", "`SECRET` of the first key, in place of a made one")
	fs.StringVar(&c.controlToken, "control-token", "", "`TOKEN` of the control API, in place of a random one")
	fs.BoolVar(&c.untilEOF, "until-eof", false, "stop when standard input ends")
}

func (c *call) openapi() error {
	_, err := c.Stdout.Write(openAPI)
	return command.Failed(err)
}

func (c *call) version() error {
	module, stamped := "example.com/events", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		module, stamped = info.Main.Path, info.Main.Version
	}
	_, err := fmt.Fprintf(c.Stdout, "eventsd %s %s %s %s/%s\n", module, cmp.Or(version, stamped, "(devel)"),
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return command.Failed(err)
}

// health asks the server that the same flags and environment would start.
func (c *call) health() error {
	asked, err := command.Health(c.addr, c.readyFile)
	if err == nil {
		_, err = fmt.Fprintln(c.Stdout, "ok: "+asked)
	}
	return command.Failed(err)
}

// service is a server that is about to serve.
type service struct {
	store   *Store
	servers []*command.Server
	ready   command.Ready
	wait    time.Duration // for the requests that run when it stops
}

// host runs a server from its start to its end. It listens before it calls start:
// no key must be made and shown for a server that cannot serve.
func (c *call) host(start func(context.Context, net.Listener, *Config) (*service, error)) (err error) {
	if c.logger, err = c.Logger(c.log, c.verbose); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(command.StopSignal(c.ctx))
	defer stop()
	if c.untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, c.Stdin)
			stop()
		}()
	}
	l, err := command.Listen(c.addr, c.logger)
	if err != nil {
		return err
	}
	defer l.Close()
	file, err := command.NewReadyFile(c.readyFile)
	if err != nil {
		return err
	}
	defer file.Remove()
	s, err := start(ctx, l, &Config{Logger: c.logger, NewEventStatus: c.status})
	switch withChild := len(c.Args) > 0; {
	case errors.Is(err, context.Canceled) && withChild:
		return command.Failed(errors.New("stopped before the command was started"))
	case errors.Is(err, context.Canceled): // stopped while it started
		return nil
	case err != nil:
		return err
	case withChild:
		err = command.Serve(c.ctx, s.wait, s.servers, func() error { return c.runChild(ctx, s.ready, file) })
	default:
		err = command.Serve(ctx, s.wait, s.servers, func() error { return s.ready.Print(c.Stdout, file) })
	}
	file.Remove() // before the lock of the data file is released to the next server
	if err = errors.Join(err, cmp.Or(s.store.Err(), s.store.Close())); err == nil {
		c.logger.Info("stopped")
	}
	return command.Failed(err)
}

// serve serves the store of the data file, and its operator on a socket.
func (c *call) serve() error {
	if err := c.checkServeFlags(); err != nil {
		return err
	}
	return c.host(func(ctx context.Context, l net.Listener, cfg *Config) (*service, error) {
		store, key, err := c.open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		a := newAPI(store)
		s := c.newService(l, a, c.logged(a, nil), "svc_live_…", "The operator of this server issues keys.")
		s.ready.Ready = c.curl(s.ready.BaseURL, key)
		if c.apiKey == "" {
			s.ready.Key = key.Secret
		}
		if store.path() != "" {
			c.addOperator(s, a)
		}
		return s, nil
	})
}

// checkServeFlags checks the flags that only serve has.
func (c *call) checkServeFlags() error {
	ready, _ := filepath.Abs(c.readyFile)
	data, _ := filepath.Abs(c.data)
	switch {
	case c.status != "draft" && c.status != "published":
		return fmt.Errorf("-new-event-status must be draft or published, not %q", c.status)
	case c.readyFile != "" && ready == data:
		return errors.New("-ready-file must be a file of its own, not that of -data, as it is removed")
	case c.Given["memory"] && c.memory && c.Given["data"]:
		return errors.New("-memory and -data exclude each other; give one of them")
	case c.Given["data"]:
		c.memory = false // the flag wins over EVENTSD_MEMORY
	}
	return c.checkAPIKey()
}

// checkAPIKey refuses a chosen secret that breaks the rule, and does not repeat it.
func (c *call) checkAPIKey() error {
	if problem := secretRule(c.apiKey); c.apiKey != "" && problem != "" {
		return errors.New("-api-key " + problem)
	}
	return nil
}

// curl is a line to paste: it creates the first event where a key was made just
// now, and lists events otherwise. It holds no secret that was chosen.
func (c *call) curl(base string, key keyState) string {
	header := `"x-service-api-key: $KEY"`
	switch {
	case c.apiKey != "" && key.Known:
		header = `"x-service-api-key: $EVENTSD_API_KEY"`
	case key.Secret != "":
		header = "'x-service-api-key: " + key.Secret + "'"
	}
	if key.Secret == "" {
		return "curl -H " + header + " " + base + "/events"
	}
	const event = `{"title":"Hello","start_at":"2030-01-01T18:00:00Z","end_at":"2030-01-01T20:00:00Z"}`
	header += " -H 'Content-Type: application/json'"
	return "curl -H " + header + " -d '" + event + "' " + base + "/events/create"
}

func (c *call) demo() error {
	return c.host(func(_ context.Context, l net.Listener, cfg *Config) (*service, error) {
		store := NewStore(cfg)
		if err := store.ApplyJSON(demoSeed); err != nil {
			return nil, err
		}
		a := newAPI(store)
		s := c.newService(l, a, c.logged(a, nil), demoKey,
			"This is a demo: everyone knows its key, and when it stops it forgets everything.")
		s.ready.Key = demoKey
		s.ready.Ready = "curl -H 'x-service-api-key: " + demoKey + "' " + s.ready.BaseURL + "/events"
		return s, nil
	})
}

// double serves a test double, with the control API beside it.
func (c *call) double() error {
	token := cmp.Or(c.controlToken, rand.Text())
	start, err := strict.Time(c.start)
	switch {
	case err != nil:
		return fmt.Errorf("-time %w", err)
	case !form.Visible(token) || strings.ContainsRune(token, '\''):
		return errors.New("-control-token must have visible ASCII characters only, and no single quote")
	case c.Dashes != (len(c.Args) > 0):
		return errors.New("double takes a command behind --, as in eventsd double -- npm test, or neither")
	case c.Dashes && c.untilEOF:
		return errors.New("-until-eof excludes a command: the double ends with it")
	}
	if err := c.checkAPIKey(); err != nil {
		return err
	}
	return c.host(func(ctx context.Context, l net.Listener, cfg *Config) (*service, error) {
		d := double.New(BasePath, Operations(), start)
		d.Unknown = func(method, path, nearest string) {
			c.logger.Warn("the API has no such route", "method", method, "path", path, "nearest", nearest)
		}
		cfg.Now, cfg.NewID, cfg.Intercept = d.Now, d.NewID, d.Intercept
		store := NewStore(cfg)
		key, err := d.Begin(store, c.apiKey, func() error { return c.applySeed(ctx, store) })
		if err != nil {
			return nil, err
		}
		a := newAPI(store)
		entry := func(r *http.Request) []any {
			e := d.Entry(r)
			return []any{"user", e.User, "fault", e.Fault}
		}
		s := c.newService(l, a, d.Handler(c.logged(a, entry)), "svc_live_…",
			"This is a test double. Its control API is at <code>{root}"+double.ControlPath+"</code>.")
		srv := s.servers[0]
		api, control := srv.Handler, c.logged(d.Control(token, a.fail), nil)
		srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path+"/", double.ControlPath+"/") {
				control.ServeHTTP(w, r)
			} else {
				api.ServeHTTP(w, r)
			}
		})
		srv.WriteTimeout = 0 // a fault may hold a request for longer
		srv.RegisterOnShutdown(d.Close)
		url := strings.TrimSuffix(s.ready.BaseURL, BasePath) + double.ControlPath
		s.ready = command.Ready{
			BaseURL: s.ready.BaseURL, Key: key, ControlURL: url, ControlToken: token, PID: s.ready.PID,
			Ready: "curl -H 'Authorization: Bearer " + token + `' -d '{"name":"Grace"}' ` + url + "/keys",
		}
		s.wait = 0 // nothing in it is worth waiting for
		return s, nil
	})
}

// runChild runs the command that follows "--" beside a double.
func (c *call) runChild(starting context.Context, ready command.Ready, file *command.ReadyFile) error {
	if err := ready.Print(io.Discard, file); err != nil {
		return err
	}
	return c.Child(c.ctx, starting, c.Args, []string{
		"EVENTS_BASE_URL=" + ready.BaseURL, "EVENTS_API_KEY=" + ready.Key,
		"EVENTS_CONTROL_URL=" + ready.ControlURL, "EVENTS_CONTROL_TOKEN=" + ready.ControlToken,
	})
}

// newService returns a service with a server for the API and what people and
// probes ask for beside it. Key and note stand on the page.
func (c *call) newService(l net.Listener, a *api, next http.Handler, key, note string) *service {
	base := command.URL(l.Addr().String(), "localhost") + BasePath
	return &service{
		store:   a.store,
		servers: []*command.Server{command.NewServer(l, c.withPages(a, next, key, note), c.logger)},
		ready:   command.Ready{BaseURL: base, Data: "memory", Operator: "off (memory)", PID: os.Getpid()},
		wait:    command.StopTimeout,
	}
}

// addOperator adds a server for the operator to a service whose store is on a
// file, if its socket can be made.
func (c *call) addOperator(s *service, a *api) {
	s.ready.Data = s.store.path()
	s.ready.Operator = command.SocketPath(s.ready.Data)
	socket, err := command.Socket(s.ready.Operator)
	if err != nil {
		s.ready.Operator = "off (" + err.Error() + ")"
		return
	}
	routes := operator.StoreRoutes(s.store, func(string) string { return s.ready.BaseURL })
	handler := c.logged(operator.Handler("", routes, a.fail), nil)
	s.servers = append(s.servers, command.NewServer(socket, handler, c.logger))
}

// logged logs a line for each request with -v.
func (c *call) logged(h http.Handler, more func(*http.Request) []any) http.Handler {
	if c.verbose {
		return command.Logged(h, c.logger, more)
	}
	return h
}

var errNotWriting = &answer.Error{Status: http.StatusServiceUnavailable, Code: "server_error",
	Message: "the data file cannot be written; the log says why"}

// withPages serves what needs no key, and leaves every other path to next.
func (c *call) withPages(a *api, next http.Handler, key, note string) http.Handler {
	page := strings.NewReplacer("{note}", note, "{key}", key).Replace(pageHTML)
	pages := map[string]http.HandlerFunc{
		"/": func(w http.ResponseWriter, r *http.Request) {
			root := html.EscapeString("http://" + r.Host[:min(len(r.Host), 255)])
			if r.Header.Get("X-Forwarded-Proto") == "https" {
				root = "https" + root[len("http"):]
			}
			page := strings.NewReplacer("{root}", root, "{base}", root+BasePath).Replace(page)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Length", strconv.Itoa(len(page)))
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, page) // where that fails, the client has gone
		},
		"/openapi.json": func(w http.ResponseWriter, _ *http.Request) {
			answer.Write(w, http.StatusOK, openAPI)
		},
		"/healthz": func(w http.ResponseWriter, r *http.Request) {
			if a.store.Err() != nil {
				a.fail(w, r, errNotWriting)
				return
			}
			answer.Write(w, http.StatusOK, `{"status":"ok"}`)
		},
	}
	own := c.logged(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer answer.Recover(w, r, a.fail)
		begin(w, r)
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			a.fail(w, r, answer.Method(r.URL.Path, "GET, HEAD"))
			return
		}
		pages[r.URL.Path](w, r)
	}), nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pages[r.URL.Path] != nil {
			own.ServeHTTP(w, r)
		} else {
			next.ServeHTTP(w, r)
		}
	})
}

// open opens the store that the flags name, with its seed and its first key.
func (c *call) open(ctx context.Context, cfg *Config) (store *Store, key keyState, err error) {
	store, closeStore := NewStore(cfg), func() error { return nil }
	if !c.memory {
		if store, closeStore, err = openFile(c.data, cfg); err != nil {
			return nil, key, err
		}
	}
	if key, err = c.fill(ctx, store); err != nil {
		return nil, key, errors.Join(err, closeStore())
	}
	return store, key, nil
}

// fill applies the seed to a store without data and makes the first key of one
// without keys. It reports what it did not do, and how to issue a key.
func (c *call) fill(ctx context.Context, store *Store) (key keyState, err error) {
	if c.seed != "" && !store.empty() {
		c.logger.Warn("the seed was skipped, as the store has data: it needs a new -data", "seed", c.seed)
	} else if err := c.applySeed(ctx, store); err != nil {
		return key, err
	}
	if ctx.Err() != nil { // else the key might never be shown
		return key, context.Canceled
	}
	if key, err = store.firstKey(c.apiKey, c.firstKey || c.apiKey != ""); err != nil {
		return key, err
	}
	if c.seed != "" && !key.Exists {
		c.logger.Info("the store has no key after the seed", "seed", c.seed)
	}
	report, owner := c.logger.Info, "-user "+key.Owner.ID
	var state string
	switch {
	case key.Secret != "":
		state = "made the first key"
	case c.apiKey != "" && !key.Known:
		report = c.logger.Warn
		state = "-api-key was not used: the store has keys, and this is none of them or was revoked"
	case key.Exists:
		state = "the store has keys"
	default:
		state, owner = "the store has no key", "-name NAME -email EMAIL"
	}
	if !c.memory { // else no other command reaches the store
		data := strings.ReplaceAll(c.data, "'", `'\''`)
		state += "; to issue another: eventsd key issue -data '" + data + "' " + owner
	}
	report(state, "name", key.Owner.Name, "email", key.Owner.Email)
	return key, nil
}

// applySeed applies the file of -seed, if there is one. It may be a pipe that
// nobody writes to: a stop does not wait for it.
func (c *call) applySeed(ctx context.Context, store *Store) error {
	if c.seed == "" {
		return nil
	}
	var records []byte
	var err error
	read := make(chan struct{})
	go func() {
		defer close(read)
		records, err = readRecords(c.seed)
	}()
	select {
	case <-ctx.Done():
		return context.Canceled
	case <-read:
	}
	var ahead time.Time
	if err == nil {
		ahead, err = store.applySeed(records)
	}
	if err != nil {
		return fmt.Errorf("the seed %s: %w", c.seed, err)
	}
	if !ahead.IsZero() {
		c.logger.Warn("the seed has records from the future; what is created now counts as later still",
			"seed", c.seed, "created_at", ahead)
	}
	return nil
}

// readRecords reads an array of records, which a data file is not.
func readRecords(path string) ([]byte, error) {
	records, err := os.ReadFile(path)
	if err == nil && rows.IsDataFile(records) {
		err = fmt.Errorf("%s is a data file, not an array of records; eventsd dump makes one of it", path)
	}
	return records, err
}

// openFile opens a data file, or makes a new one. The function that closes it
// removes a new one to which nothing was added.
func openFile(path string, cfg *Config) (store *Store, closeStore func() error, err error) {
	isNew := errors.Is(exists(path), os.ErrNotExist)
	if store, err = Open(path, cfg); err != nil {
		return nil, nil, err
	}
	return store, func() error {
		switch file := store.path(); {
		case isNew && store.empty():
			os.Remove(file) // while its lock is ours
		case isNew:
			store.cfg.Logger.Info("made a new data file", "data", file)
		}
		return store.Close()
	}, nil
}

func exists(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w; give the -data of the server", err)
	}
	return nil
}

// openForOperator is [operator.Files.Open].
func (c *call) openForOperator(path string, create bool) (operator.Store, func() error, error) {
	if err := exists(path); err != nil && !create {
		return nil, nil, err
	}
	logger, err := c.Logger("text", false)
	if err != nil {
		return nil, nil, err
	}
	return openFile(path, &Config{Logger: logger})
}

// check is [operator.Files.Check].
func check(path string) (report string, err error) {
	if err := exists(path); err != nil {
		return "", err
	}
	r, err := rows.Check(path, NewStore(nil).options())
	if errors.Is(err, ErrFormat) || errors.Is(err, os.ErrPermission) {
		return "", err
	}
	if err != nil {
		return "", command.Failed(err)
	}
	return fmt.Sprintf("file: %s\nbytes: %d\nlines: %d\ncommits: %d to %d, the snapshot up to %d\n"+
		"users: %d\nkeys: %d\nevents: %d\nguests: %d\nfound: %s\n",
		path, r.Size, r.Lines, r.First, r.Last, r.Snap,
		r.Count["user"], r.Count["key"], r.Count["event"], r.Count["guest"], cmp.Or(r.Repair, "clean")), nil
}

// salvage is [operator.Files.Salvage].
func salvage(path string, found func(text string) error, skipped func(part string)) error {
	wrong, err := rows.Salvage(path, found)
	for _, s := range wrong {
		skipped(fmt.Sprintf("line %d at byte %d, %d bytes: does not verify", s.Line, s.Offset, s.Bytes))
	}
	return err
}
