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

// version is set by the linker if the build knows no tag:
// -ldflags "-X example.com/events.version=v1.2.3".
var version string

// Run is the command eventsd: it does what args ask for, which do not hold the
// program's name, and returns the exit status. Flags that are not given are
// read from getenv, -new-event-status from EVENTSD_NEW_EVENT_STATUS and so on.
// A server stops when ctx is done, or at SIGINT or SIGTERM.
//
// The status is 0 on success. It is 2 if something was refused, such as a bad flag
// or a damaged file. It is 1 if something failed, such as writing a file, or if
// check finds damage, or health a server that is not well. After "double -- COMMAND"
// it is that of the command. An error is one line on stderr.
func Run(
	ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	c := &call{ctx: ctx}
	c.Program = command.Program{
		Name: "eventsd", About: "eventsd serves the public REST API of an events networking service.",
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Redact: answer.Redact,
	}
	files := operator.Files{Open: c.openForOperator, Records: c.readRecords, Salvage: c.salvage}
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

	addr, data, seed, newStatus, readyFile, log string
	apiKey, startTime, controlToken             string
	memory, firstKey, untilEOF, verbose         bool
}

// commands are the subcommands, but for the operator's. The first of them is what
// eventsd does without a subcommand.
func (c *call) commands() []command.Command {
	return []command.Command{
		{Name: "serve", Flags: c.serveFlags, Run: c.serve,
			Summary: "serve the API; also without a subcommand"},
		{Name: "demo", Flags: func(fs *flag.FlagSet) { c.serverFlags(fs, "127.0.0.1:8080") }, Run: c.demo,
			Summary: "serve a built-in example from memory, with a curl line to try"},
		{Name: "double", Args: "[-- COMMAND ARGS]", Flags: c.doubleFlags, Run: c.double,
			Summary: "serve a test double from memory, alone or for as long as a command runs"},
		{Name: "openapi", Run: func() error { return c.Print(string(openAPI)) },
			Summary: "print openapi.json"},
		{Name: "health", Flags: c.serveFlags, Run: c.health,
			Summary: "exit 0 if the server with the same flags and environment answers"},
		{Name: "version", Run: c.version,
			Summary: "print the version"},
		{Name: "check", Flags: c.dataFlag, Run: c.check,
			Summary: "read the data file, print what is in it and change nothing"},
	}
}

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
	fs.StringVar(&c.seed, "seed", "", "`FILE` with an array of records for an empty store, or - for stdin")
	fs.BoolVar(&c.firstKey, "first-key", true, "if the store has no key, make one and show it")
	fs.StringVar(&c.apiKey, "api-key", "", "`SECRET` of the first key, in place of a random one")
	fs.StringVar(&c.newStatus, "new-event-status", "published", "`STATUS` of a new event: draft or published")
}

func (c *call) doubleFlags(fs *flag.FlagSet) {
	c.serverFlags(fs, "127.0.0.1:0")
	fs.StringVar(&c.seed, "seed", "", "`FILE` with an array of records to begin with, or - for stdin")
	fs.StringVar(&c.startTime, "time", double.Start.Format(time.RFC3339),
		"`TIME` at which the clock stands at the start, in RFC 3339")
	fs.StringVar(&c.apiKey, "api-key", "", "`SECRET` of the first key, in place of a made one")
	fs.StringVar(&c.controlToken, "control-token", "", "`TOKEN` of the control API, in place of a random one")
	fs.BoolVar(&c.untilEOF, "until-eof", false, "stop when standard input ends")
}

func (c *call) version() error {
	module, stamped := "example.com/events", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		module, stamped = info.Main.Path, info.Main.Version
	}
	return c.Print(fmt.Sprintf("eventsd %s %s %s %s/%s\n", module, cmp.Or(version, stamped, "(devel)"),
		runtime.Version(), runtime.GOOS, runtime.GOARCH))
}

// health asks the server that the same flags and environment would start.
func (c *call) health() error {
	asked, err := command.Health(c.addr, c.readyFile)
	if err != nil {
		return command.Failed(err)
	}
	return c.Print("ok: " + asked + "\n")
}

// service is a server that is about to serve.
type service struct {
	Config    // of its store
	store     *Store
	ready     command.Ready
	key, note string                  // on the page for people
	wrap      func(*api) http.Handler // returns what serves the API
	wait      time.Duration           // for the requests that run when it stops
}

// runServer runs a server from its start to its end. It listens before it calls start,
// which completes the service: no key must be made and shown for a server that
// cannot serve. A stop does not wait for start, which may read a seed from a pipe
// that nobody writes to: it leaves no more behind than a crash.
func (c *call) runServer(start func(*service) error) (err error) {
	if problem := secretRule(c.apiKey); (c.apiKey != "" || c.Given["api-key"]) && problem != "" {
		return errors.New("-api-key " + problem) // which does not repeat the secret
	}
	if c.logger, err = c.Logger(c.log, c.verbose); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	if len(c.Args) == 0 { // else signals are for the command that runs beside it
		ctx = command.StopSignal(ctx)
	}
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
	s := &service{
		Config: Config{Logger: c.logger, NewEventStatus: c.newStatus},
		ready: command.Ready{BaseURL: command.URL(l.Addr().String(), "localhost") + BasePath,
			Data: "memory", Operator: "off (memory)"},
		key:  "svc_live_…",
		wrap: func(a *api) http.Handler { return command.Logged(a, c.logger, nil) },
		wait: command.StopTimeout,
	}
	started := make(chan error, 1)
	go func() { started <- start(s) }()
	select {
	case <-ctx.Done():
		return command.Failed(c.ctx.Err()) // nil after a signal
	case err := <-started:
		if err != nil {
			return err
		}
	}
	meanwhile := func() error { return s.ready.Print(c.Stdout, file) }
	if len(c.Args) > 0 {
		meanwhile = func() error { return c.runChild(s.ready, file) }
	}
	err = command.Serve(ctx, s.wait, c.servers(l, s), meanwhile)
	file.Remove() // before the lock of the data file is released to the next server
	if err = errors.Join(err, cmp.Or(s.store.Err(), s.store.Close())); err == nil {
		c.logger.Info("stopped")
	}
	return command.Failed(err)
}

// servers returns a server for the API and the pages beside it, for people and probes,
// and one for the operator if the store is on a file and a socket can be made.
func (c *call) servers(l net.Listener, s *service) []*command.Server {
	a := newAPI(s.store)
	servers := []*command.Server{command.NewServer(l, c.withPages(a, s), c.logger)}
	if s.store.db.Path() == "" {
		return servers
	}
	s.ready.Data = s.store.db.Path()
	s.ready.Operator = command.SocketPath(s.ready.Data)
	socket, err := command.Socket(s.ready.Operator)
	if err != nil {
		s.ready.Operator = "off (" + err.Error() + ")"
		return servers
	}
	routes := operator.StoreRoutes(a, func(string) string { return s.ready.BaseURL })
	handler := command.Logged(operator.Handler("", routes, a.writeError), c.logger, nil)
	return append(servers, command.NewServer(socket, handler, c.logger))
}

// serve serves the store of the data file.
func (c *call) serve() error {
	switch {
	case c.newStatus != "draft" && c.newStatus != "published":
		return fmt.Errorf("-new-event-status must be draft or published, not %q", c.newStatus)
	case c.data == "":
		return errors.New("-data is empty: give the path of the data file")
	case filepath.Clean(c.readyFile) == filepath.Clean(c.data):
		return errors.New("-ready-file must be a file of its own, not that of -data, as it is removed")
	case c.Given["memory"] && c.memory && c.Given["data"]:
		return errors.New("-memory and -data exclude each other; give one of them")
	case c.Given["data"]:
		c.memory = false // the flag wins over EVENTSD_MEMORY
	}
	return c.runServer(func(s *service) (err error) {
		if s.store = NewStore(&s.Config); !c.memory {
			if s.store, err = Open(c.data, &s.Config); err != nil {
				return err
			}
		}
		key, err := c.fill(s.store)
		if err != nil {
			return errors.Join(err, s.store.Close())
		}
		secret := cmp.Or(key.Secret, "$KEY")
		if s.ready.Key = key.Secret; c.apiKey != "" && key.Known { // chosen, so it is not shown
			s.ready.Key, secret = "", "$EVENTSD_API_KEY"
		}
		s.ready.Ready = curl(s.ready.BaseURL, secret)
		s.note = "The operator of this server issues keys."
		return nil
	})
}

// curl is a line to paste that lists events.
func curl(base, key string) string {
	return `curl -H "x-service-api-key: ` + key + `" ` + base + "/events"
}

func (c *call) demo() error {
	return c.runServer(func(s *service) error {
		s.store = NewStore(&s.Config)
		s.key = demoKey
		s.note = "This is a demo: everyone knows its key, and when it stops it forgets everything."
		s.ready.Key, s.ready.Ready = demoKey, curl(s.ready.BaseURL, demoKey)
		return s.store.ApplyJSON(demoSeed)
	})
}

// double serves a test double, with the control API beside it.
func (c *call) double() error {
	token := cmp.Or(c.controlToken, rand.Text())
	start, err := strict.Time(c.startTime)
	switch {
	case err != nil:
		return fmt.Errorf("-time %w", err)
	case !form.Visible(token) || strings.Contains(token, "'"):
		return errors.New("-control-token must have visible ASCII characters only, and no single quote")
	case c.Dashes != (len(c.Args) > 0):
		return errors.New("double takes a command behind --, as in eventsd double -- npm test, or neither")
	case c.Dashes && c.untilEOF:
		return errors.New("-until-eof excludes a command: the double ends with it")
	}
	return c.runServer(func(s *service) error {
		d := double.New(BasePath, start)
		d.Unknown = func(method, path, nearest string) {
			c.logger.Warn("the API has no such route", "method", method, "path", path, "nearest", nearest)
		}
		s.Now, s.NewID, s.Intercept = d.Now, d.NewID, d.Intercept
		s.store = NewStore(&s.Config)
		key, err := d.Begin(newAPI(s.store), c.apiKey, func() error { return c.applySeed(s.store) })
		s.wrap = func(a *api) http.Handler { return c.withControl(a, d, token) }
		s.note = "This is a test double. Its control API is at <code>{root}" + double.ControlPath + "</code>."
		url := strings.TrimSuffix(s.ready.BaseURL, BasePath) + double.ControlPath
		s.ready = command.Ready{BaseURL: s.ready.BaseURL, Key: key, ControlURL: url, ControlToken: token,
			Ready: "curl -H 'Authorization: Bearer " + token + `' -d '{"name":"Grace"}' ` + url + "/keys"}
		s.wait = 0 // nothing in it is worth waiting for
		return err
	})
}

// withControl serves the API as a double does, and its control API.
func (c *call) withControl(a *api, d *double.Double, token string) http.Handler {
	control := command.Logged(d.Control(token, a.writeError), c.logger, nil)
	next := d.Handler(command.Logged(a, c.logger, func(r *http.Request) []any {
		e := d.Entry(r)
		return []any{"user", e.User, "fault", e.Fault}
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path+"/", double.ControlPath+"/") {
			control.ServeHTTP(w, r)
			return
		}
		// A fault may hold a request for longer than an answer may take.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		next.ServeHTTP(w, r)
	})
}

// runChild runs the command that follows "--" beside a double.
func (c *call) runChild(ready command.Ready, file *command.ReadyFile) error {
	if err := ready.Print(io.Discard, file); err != nil {
		return err
	}
	return c.Child(c.ctx, c.Args, []string{
		"EVENTS_BASE_URL=" + ready.BaseURL, "EVENTS_API_KEY=" + ready.Key,
		"EVENTS_CONTROL_URL=" + ready.ControlURL, "EVENTS_CONTROL_TOKEN=" + ready.ControlToken,
	})
}

var errNotWriting = &answer.Error{Status: http.StatusServiceUnavailable,
	Message: "the data file cannot be written; the log says why"}

// withPages serves the API and, beside it, the paths that need no key.
func (c *call) withPages(a *api, s *service) http.Handler {
	next := s.wrap(a)
	page := strings.NewReplacer("{note}", s.note, "{key}", s.key).Replace(pageHTML)
	pages := command.Logged(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin(w, r)
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			a.writeError(w, r, answer.Method(r.URL.Path, "GET, HEAD"))
		case r.URL.Path == "/":
			writePage(w, r, page)
		case r.URL.Path == "/openapi.json":
			answer.Write(w, http.StatusOK, openAPI)
		case s.store.Err() != nil:
			a.writeError(w, r, errNotWriting)
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
	root := html.EscapeString(cmp.Or(r.Header.Get("X-Forwarded-Proto"), "http") + "://" + r.Host)
	page = strings.NewReplacer("{root}", root, "{base}", root+BasePath).Replace(page)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, page) // if that fails, the client has gone
}

// fill applies the seed to a store without data and makes the first key of one
// without keys. It reports what it did not do, and how to issue a key.
func (c *call) fill(store *Store) (key keyState, err error) {
	if c.seed != "" && !store.empty() {
		c.logger.Warn("the seed was skipped, as the store has data: give a new -data", "seed", c.seed)
	} else if err := c.applySeed(store); err != nil {
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
	owner := "-name NAME -email EMAIL"
	if key.Owner.ID != "" {
		owner = "-user " + key.Owner.ID
	}
	if !c.memory { // else no other command reaches the store
		state += "; to issue one: eventsd key issue -data '" + c.data + "' " + owner
	}
	c.logger.Info(state, "name", key.Owner.Name, "email", key.Owner.Email)
	return key, nil
}

// applySeed applies the file of -seed, if there is one.
func (c *call) applySeed(store *Store) error {
	if c.seed == "" {
		return nil
	}
	records, err := c.readRecords(c.seed)
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

// readRecords reads an array of records, which a data file is not, from a file or,
// for "-", from standard input.
func (c *call) readRecords(path string) (records []byte, err error) {
	if path == "-" {
		return io.ReadAll(c.Stdin)
	}
	if records, err = os.ReadFile(path); err == nil && rows.IsDataFile(records) {
		err = fmt.Errorf("%s is a data file, not an array of records; eventsd dump makes one of it", path)
	}
	return records, err
}

// openForOperator is [operator.Files.Open].
func (c *call) openForOperator(path string, create bool) (operator.Store, func() error, error) {
	if _, missing := os.Stat(path); missing != nil && !create {
		return nil, nil, fmt.Errorf("%w; give the -data of the server", missing)
	}
	logger, _ := c.Logger("text", false) // an error is one of the format
	store, err := Open(path, &Config{Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	return newAPI(store), store.Close, nil
}

// check reads the data file and prints what is in it. It ends with status 1 if the
// file is damaged, and not with 2: it has found what it looks for.
func (c *call) check() error {
	r, count, err := rows.Check(c.data, NewStore(nil).options())
	if errors.Is(err, ErrDamaged) {
		return command.Failed(err)
	}
	if err != nil {
		return err
	}
	return c.Print(fmt.Sprintf("file: %s\nbytes: %d\nlines: %d\n"+
		"commits: %d to %d, the snapshot up to %d\nusers: %d\nkeys: %d\nevents: %d\nguests: %d\nfound: %s\n",
		command.Printable(c.data), r.Size, r.Lines, r.First, r.Last, r.Snap,
		count["user"], count["key"], count["event"], count["guest"], cmp.Or(r.Repair, "clean")))
}

// salvage is [operator.Files.Salvage]. It prints nothing on stdout if there is no
// record: an empty array would look like a seed.
func (c *call) salvage(path string) error {
	var records []string
	wrong, missing, err := rows.Salvage(path, func(record string) error {
		records = append(records, record)
		return nil
	})
	if records != nil {
		err = errors.Join(err, c.Print("[\n"+strings.Join(records, ",\n")+"\n]\n"))
	}
	for _, s := range wrong {
		c.Notice("skipped line %d at byte %d, %d bytes: does not verify", s.Line, s.Offset, s.Bytes)
	}
	if missing > 0 || wrong != nil {
		c.Notice("what is not in the output, %d commits at least, may have revoked keys, which are valid "+
			"in it, or deleted records, which are back in it: look through it before you use it", missing)
	}
	return err
}
