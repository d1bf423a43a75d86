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
	files := operator.Files{Open: c.openForOperator, Records: readRecords, Salvage: salvage}
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
		{Name: "check", Flags: c.dataFlag, Run: c.check,
			Summary: "read the data file, say what is in it and change nothing"},
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

func (c *call) dataFlag(fs *flag.FlagSet) {
	fs.StringVar(&c.data, "data", "events.json", "the data `FILE`")
}

func (c *call) serveFlags(fs *flag.FlagSet) {
	c.serverFlags(fs, "127.0.0.1:8080")
	c.dataFlag(fs)
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
	_, err := io.WriteString(c.Stdout, openAPI)
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

// errStopped is the error of a server that was stopped before it was ready.
var errStopped = command.Failed(errors.New("stopped before it was ready"))

// host runs a server from its start to its end. It listens before it calls start:
// no key must be made and shown for a server that cannot serve.
func (c *call) host(start func(context.Context, net.Listener, *Config) (*service, error)) (err error) {
	if problem := secretRule(c.apiKey); c.apiKey != "" && problem != "" {
		return errors.New("-api-key " + problem) // which does not repeat the secret
	}
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
	if errors.Is(err, errStopped) && len(c.Args) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	until, ready := ctx, func() error { return s.ready.Print(c.Stdout, file) }
	if len(c.Args) > 0 { // a signal is for the command, whose end ends the server
		until, ready = c.ctx, func() error { return c.runChild(ctx, s.ready, file) }
	}
	err = command.Serve(until, s.wait, s.servers, ready)
	file.Remove() // before the lock of the data file is released to the next server
	if err = errors.Join(err, cmp.Or(s.store.Err(), s.store.Close())); err == nil {
		c.logger.Info("stopped")
	}
	return command.Failed(err)
}

// serve serves the store of the data file, and its operator on a socket.
func (c *call) serve() error {
	switch {
	case c.status != "draft" && c.status != "published":
		return fmt.Errorf("-new-event-status must be draft or published, not %q", c.status)
	case filepath.Clean(c.readyFile) == filepath.Clean(c.data):
		return errors.New("-ready-file must be a file of its own, not that of -data, as it is removed")
	case c.Given["memory"] && c.memory && c.Given["data"]:
		return errors.New("-memory and -data exclude each other; give one of them")
	case c.Given["data"]:
		c.memory = false // the flag wins over EVENTSD_MEMORY
	}
	return c.host(func(ctx context.Context, l net.Listener, cfg *Config) (*service, error) {
		store, err := NewStore(cfg), error(nil)
		if !c.memory {
			store, err = Open(c.data, cfg)
		}
		if err != nil {
			return nil, err
		}
		key, err := c.fill(ctx, store)
		if err != nil {
			return nil, errors.Join(err, store.Close())
		}
		a := newAPI(store)
		s := c.newService(l, a, command.Logged(a, c.logger, nil), "svc_live_…",
			"The operator of this server issues keys.")
		c.addOperator(s, a)
		switch {
		case c.apiKey != "" && key.Known:
			s.ready.Ready = curl(s.ready.BaseURL, "$EVENTSD_API_KEY")
		case key.Secret != "":
			s.ready.Key = key.Secret
			s.ready.Ready = curl(s.ready.BaseURL, key.Secret)
		default:
			s.ready.Ready = curl(s.ready.BaseURL, "$KEY")
		}
		return s, nil
	})
}

// curl is a line to paste that lists events.
func curl(base, key string) string {
	return `curl -H "x-service-api-key: ` + key + `" ` + base + "/events"
}

func (c *call) demo() error {
	return c.host(func(_ context.Context, l net.Listener, cfg *Config) (*service, error) {
		store := NewStore(cfg)
		if err := store.ApplyJSON(demoSeed); err != nil {
			return nil, err
		}
		a := newAPI(store)
		s := c.newService(l, a, command.Logged(a, c.logger, nil), demoKey,
			"This is a demo: everyone knows its key, and when it stops it forgets everything.")
		c.addOperator(s, a)
		s.ready.Key, s.ready.Ready = demoKey, curl(s.ready.BaseURL, demoKey)
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
		s := c.newService(l, a, d.Handler(command.Logged(a, c.logger, entry)), "svc_live_…",
			"This is a test double. Its control API is at <code>{root}"+double.ControlPath+"</code>.")
		srv, control := s.servers[0], command.Logged(d.Control(token, a.fail), c.logger, nil)
		public := srv.Handler
		srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path+"/", double.ControlPath+"/") {
				control.ServeHTTP(w, r)
			} else {
				public.ServeHTTP(w, r)
			}
		})
		srv.WriteTimeout = 0 // a fault may hold a request for longer
		srv.RegisterOnShutdown(d.Close)
		s.ready.Key, s.ready.ControlToken = key, token
		s.ready.ControlURL = strings.TrimSuffix(s.ready.BaseURL, BasePath) + double.ControlPath
		s.ready.Ready = "curl -H 'Authorization: Bearer " + token + `' -d '{"name":"Grace"}' ` +
			s.ready.ControlURL + "/keys"
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
		ready:   command.Ready{BaseURL: base, PID: os.Getpid()},
		wait:    command.StopTimeout,
	}
}

// addOperator adds a server for the operator to a service whose store is on a
// file, if its socket can be made.
func (c *call) addOperator(s *service, a *api) {
	if s.ready.Data = s.store.path(); s.ready.Data == "" {
		s.ready.Data, s.ready.Operator = "memory", "off (memory)"
		return
	}
	s.ready.Operator = command.SocketPath(s.ready.Data)
	socket, err := command.Socket(s.ready.Operator)
	if err != nil {
		s.ready.Operator = "off (" + err.Error() + ")"
		return
	}
	routes := operator.StoreRoutes(s.store, func(string) string { return s.ready.BaseURL })
	handler := command.Logged(operator.Handler("", routes, a.fail), c.logger, nil)
	s.servers = append(s.servers, command.NewServer(socket, handler, c.logger))
}

var errNotWriting = &answer.Error{Status: http.StatusServiceUnavailable,
	Message: "the data file cannot be written; the log says why"}

// withPages serves what needs no key, and leaves every other path to next.
func (c *call) withPages(a *api, next http.Handler, key, note string) http.Handler {
	page := strings.NewReplacer("{note}", note, "{key}", key).Replace(pageHTML)
	pages := command.Logged(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			a.fail(w, r, answer.Method(r.URL.Path, "GET, HEAD"))
		case r.URL.Path == "/":
			writePage(w, r, page)
		case r.URL.Path == "/openapi.json":
			answer.Write(w, http.StatusOK, openAPI)
		case a.store.Err() != nil:
			a.fail(w, r, errNotWriting)
		default:
			answer.Write(w, http.StatusOK, `{"status":"ok"}`)
		}
	}), c.logger, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/", "/openapi.json", "/healthz":
			pages.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// writePage answers with the page for people, in which the URLs are those of the
// host that it was asked for.
func writePage(w http.ResponseWriter, r *http.Request, page string) {
	root := html.EscapeString("http://" + r.Host[:min(len(r.Host), 255)])
	if r.Header.Get("X-Forwarded-Proto") == "https" {
		root = "https" + root[len("http"):]
	}
	page = strings.NewReplacer("{root}", root, "{base}", root+BasePath).Replace(page)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, page) // where that fails, the client has gone
}

// fill applies the seed to a store without data and makes the first key of one
// without keys. It reports what it did not do, and how to issue a key.
func (c *call) fill(ctx context.Context, store *Store) (key keyState, err error) {
	if c.seed != "" && !store.empty() {
		c.logger.Warn("the seed was skipped, as the store has data: it needs a new -data", "seed", c.seed)
	} else if err := c.applySeed(ctx, store); err != nil {
		return key, err
	}
	if key, err = store.firstKey(c.apiKey, c.firstKey); err != nil {
		return key, err
	}
	state := "the store has keys"
	switch {
	case key.Secret != "":
		state = "made the first key, as the store had none"
	case c.apiKey != "" && !key.Known:
		state = "-api-key was not used: the store has keys, and this is none of them or was revoked"
	case !key.Exists:
		state = "the store has no key"
	}
	if !c.memory && key.Owner.ID != "" { // else no other command reaches the store, or nobody has a key
		state += "; to issue another: eventsd key issue -data '" + c.data + "' -user " + key.Owner.ID
	}
	c.logger.Info(state, "name", key.Owner.Name, "email", key.Owner.Email)
	return key, nil
}

// applySeed applies the file of -seed, if there is one. It may be a pipe that
// nobody writes to: a stop does not wait for it.
func (c *call) applySeed(ctx context.Context, store *Store) error {
	if c.seed == "" {
		return nil
	}
	var records []byte
	read := make(chan error, 1)
	go func() {
		var err error
		records, err = readRecords(c.seed)
		read <- err
	}()
	var err error
	select {
	case <-ctx.Done():
		return errStopped
	case err = <-read:
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

func exists(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w; give the -data of the server", err)
	}
	return nil
}

// openForOperator is [operator.Files.Open].
func (c *call) openForOperator(path string, create bool) (operator.Store, func() error, error) {
	missing := exists(path)
	if missing != nil && !create {
		return nil, nil, missing
	}
	logger, err := c.Logger("text", false)
	if err != nil {
		return nil, nil, err
	}
	store, err := Open(path, &Config{Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	return store, func() error {
		if missing != nil && exists(path) == nil {
			logger.Info("made a new data file", "data", store.path())
		}
		return store.Close()
	}, nil
}

// check reads the data file and says what is in it. That it is damaged is what
// this was to find, so it ends with status 1.
func (c *call) check() error {
	if err := exists(c.data); err != nil {
		return err
	}
	r, count, err := rows.Check(c.data, NewStore(nil).options())
	if errors.Is(err, ErrDamaged) {
		return command.Failed(err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Stdout, "file: %s\nbytes: %d\nlines: %d\n"+
		"commits: %d to %d, the snapshot up to %d\nusers: %d\nkeys: %d\nevents: %d\nguests: %d\nfound: %s\n",
		command.Printable(c.data), r.Size, r.Lines, r.First, r.Last, r.Snap,
		count["user"], count["key"], count["event"], count["guest"], cmp.Or(r.Repair, "clean"))
	return command.Failed(err)
}

// salvage is [operator.Files.Salvage].
func salvage(path string) (records, skipped []string, err error) {
	wrong, err := rows.Salvage(path, func(record string) error {
		records = append(records, record)
		return nil
	})
	for _, s := range wrong {
		part := fmt.Sprintf("line %d at byte %d, %d bytes: does not verify", s.Line, s.Offset, s.Bytes)
		skipped = append(skipped, part)
	}
	return records, skipped, err
}
