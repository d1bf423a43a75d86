package events

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/command"
	"example.com/events/internal/form"
	"example.com/events/internal/greeting"
	"example.com/events/internal/offline"
	"example.com/events/internal/operator"
	"example.com/events/internal/rows"
	"example.com/events/internal/strict"
	"example.com/events/internal/testdouble"
	"example.com/events/internal/webui"
)

// version is set by the linker if the build knows no tag:
// -ldflags "-X example.com/events.version=v1.2.3".
var version string

// Run is the command eventsd: it does what args ask for, which do not hold the
// program's name, and returns the exit status. Flags that are not given are read from
// environ, which has the form of [os.Environ]: -new-event-status from EVENTSD_NEW_EVENT_STATUS
// and so on. Run looks at nothing else of the environment of the process.
// A server stops when ctx is done, or at SIGINT, SIGTERM or SIGHUP. When Run returns, all that it
// began has ended, but for requests that were cut off, and a read of standard input or of a seed that
// never ends.
//
// The status is 0 on success, 1 if something failed or was refused, and 2 for an unknown subcommand or
// flag or a bad value of a flag. After "double -- COMMAND" it is the status of the command. An error is
// one line on stderr.
func Run(
	ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	e := &eventsd{ctx: ctx}
	e.program = &command.Program{
		Name:    "eventsd",
		About:   "eventsd serves the public REST API of an events networking service.",
		Environ: environ,
		Stdin:   stdin,
		Stdout:  stdout,
		Stderr:  stderr,
		Redact:  answer.Redact,
	}
	e.files = &offline.Files{
		Program: e.program,
		Options: newStore(nil).options(),
		Store:   storeOfFile,
	}
	e.addCommands()
	err := e.program.Run(args)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = ctx.Err()
	case errors.Is(err, context.Canceled):
		err = nil // a signal ended the start, which is no failure
	}
	return e.program.Exit(err)
}

// eventsd is one run of the command.
type eventsd struct {
	ctx     context.Context
	program *command.Program
	files   *offline.Files
}

// addCommands adds the subcommands. The first is what eventsd does without one.
func (e *eventsd) addCommands() {
	p := e.program
	p.Add("serve", "", "serve the API; also without a subcommand", e.serve)
	p.Add("demo", "", "serve a built-in example from memory, with a curl line to try", e.demo)
	p.Add("double", "[-- COMMAND ARGS]",
		"serve a test double from memory, alone or for as long as a command runs", e.double)
	p.Add("health", "", "exit 0 if the server at an address is healthy", e.health)
	p.Add("version", "", "print the version", e.printVersion)
	p.Add("check", "", "read the data file, print what is in it and change nothing", e.files.Check)
	operator.AddCommands(p, e.files)
	p.AddHelp()
}

// serverFlags are the flags of every server.
type serverFlags struct {
	addr, log string
	verbose   bool
}

func (f *serverFlags) declare(flags *command.Flags, addr string) {
	flags.String(&f.addr, "addr", addr, "`HOST:PORT` to listen on; port 0 is any free one")
	flags.String(&f.log, "log", "text", "`FORMAT` of the log on stderr: text or json")
	flags.Bool(&f.verbose, "v", false, "log a line for each request")
}

// storeFlags are the flags of a server whose store can be chosen.
type storeFlags struct{ seed, apiKey, newEventStatus string }

func (f *storeFlags) declare(flags *command.Flags) {
	flags.String(&f.seed, "seed", "", "`FILE` with an array of records for an empty store, or - for stdin")
	flags.String(&f.apiKey, "api-key", "", "`SECRET` of the first key, in place of one that is made")
	flags.String(&f.newEventStatus, "new-event-status", "published",
		"`STATUS` of a new event: draft or published")
}

// check refuses values that no store takes.
func (f *storeFlags) check(flags *command.Flags) error {
	problem := secretRule(f.apiKey)
	if problem != "" && (f.apiKey != "" || flags.Given("api-key")) { // the secret is not repeated
		return command.Usagef("-api-key %s", problem)
	}
	if f.newEventStatus != "draft" && f.newEventStatus != "published" {
		return command.Usagef("-new-event-status must be draft or published, not %q", f.newEventStatus)
	}
	return nil
}

// serveFlags are the flags of serve. Health has the same, to find the server.
type serveFlags struct {
	serverFlags
	storeFlags
	data             string
	memory, firstKey bool
}

func (f *serveFlags) declare(flags *command.Flags) {
	f.serverFlags.declare(flags, "127.0.0.1:8080")
	f.storeFlags.declare(flags)
	operator.DataFlag(flags, &f.data)
	flags.Bool(&f.memory, "memory", false, "keep everything in memory, without a file")
	flags.Bool(&f.firstKey, "first-key", true, "if the store has no key, make one and show it")
}

// A service is what a server serves, and how: what differs between serve, demo and double. Each
// of them makes its own, whole, before the life of the server begins.
type service struct {
	config Config // of its store
	data   string // the path of the data file; "" keeps everything in memory

	// fill puts into the store what it begins with, and returns the key that is printed, or "".
	fill func(context.Context, *adapter) (key string, err error)
	// handler returns what answers the requests for the API.
	handler func(*adapter) http.Handler
	// store returns the store that the handler serves at present.
	store func(*adapter) *Store
	// keepAlives: a connection can serve more than one request.
	keepAlives bool
	// pages are those for people, by their path.
	pages func(key string) map[string]http.HandlerFunc
	// lines are what the server prints when it is ready. In memory, the Data of the place is "".
	lines func(at greeting.Place, key string) command.Ready
	// announce says that it is ready. A double with a command runs that, and ends with it.
	announce func(context.Context, command.Ready) error

	// until returns a context that is done when the server is to stop.
	until func(context.Context) context.Context
	// drainTimeout is how long a shutdown waits for the requests that run.
	drainTimeout time.Duration
	// end is called with the error that the server ends with, once it has served, and returns
	// the one that the program ends with.
	end func(error) error
	// report logs that the server is ready and what an operator changes.
	report operator.Report
}

// apiService is what serve and demo have in common: the API and the page that describes it, which
// has a note and, if that is no secret, the key.
func (e *eventsd) apiService(logger *slog.Logger, note string, isKeyPublic bool) service {
	return service{
		config:     Config{Logger: logger},
		handler:    func(a *adapter) http.Handler { return a },
		store:      func(a *adapter) *Store { return a.Store },
		keepAlives: true,
		pages: func(key string) map[string]http.HandlerFunc {
			if !isKeyPublic {
				key = ""
			}
			return map[string]http.HandlerFunc{"/": page(webui.Reference(note, key))}
		},
		lines:        greeting.Lines,
		announce:     e.announce,
		until:        command.StopSignal,
		drainTimeout: command.DrainTimeout,
		end:          func(err error) error { return err },
		report:       logger.Info,
	}
}

// serve serves the store of the data file.
func (e *eventsd) serve(flags *command.Flags) func() error {
	var f serveFlags
	f.declare(flags)
	return func() error {
		logger, err := e.program.Logger(f.log, f.verbose)
		if err != nil {
			return err
		}
		if err := f.check(flags); err != nil {
			return err
		}
		if f.data == "" {
			return command.Usagef("-data is empty: give the path of the data file")
		}
		s := e.apiService(logger, "The operator of this server issues keys.", false)
		s.config.NewEventStatus = f.newEventStatus
		s.data = f.data
		if f.memory {
			s.data = ""
		}
		s.fill = func(ctx context.Context, a *adapter) (string, error) { return e.fill(ctx, a, f) }
		return e.live(f.serverFlags, s)
	}
}

// fill applies the seed to a store without data and creates the first key of a store without keys. It
// returns the secret of that key, unless it was chosen.
func (e *eventsd) fill(ctx context.Context, a *adapter, f serveFlags) (key string, err error) {
	logger := a.cfg.Logger
	isEmpty := a.db.Stats().Rows["user"] == 0 // every other row belongs to a user
	if f.seed != "" && !isEmpty {
		logger.Warn("the seed was skipped, as the store has data: give a new -data", "seed", f.seed)
	} else if err := e.applySeed(ctx, a, f.seed); err != nil {
		return "", err
	}
	key, err = a.firstKey(f.apiKey, f.firstKey)
	if err != nil {
		return "", err
	}
	if f.apiKey == "" {
		return key, nil
	}
	_, _, valid := a.lookupKey(f.apiKey)
	if !valid {
		logger.Warn("-api-key was not used: the store has keys, and this is none of them or was revoked")
	}
	return "", nil
}

//go:embed internal/demo/seed.json
var demoSeed []byte

const demoKey = "svc_live_demo" // of the first user in demoSeed

// demo serves the built-in example.
func (e *eventsd) demo(flags *command.Flags) func() error {
	var f serverFlags
	f.declare(flags, "127.0.0.1:8080")
	return func() error {
		logger, err := e.program.Logger(f.log, f.verbose)
		if err != nil {
			return err
		}
		const note = `<span id="demo">This is a demo: everyone knows its key, and when it stops it ` +
			`forgets everything.</span>`
		s := e.apiService(logger, note, true)
		s.fill = func(_ context.Context, a *adapter) (string, error) { return demoKey, a.ApplyJSON(demoSeed) }
		return e.live(f, s)
	}
}

// doubleFlags are the flags of double.
type doubleFlags struct {
	serverFlags
	storeFlags
	time, controlToken string
	untilEOF, anyRoute bool
}

func (f *doubleFlags) declare(flags *command.Flags) {
	f.serverFlags.declare(flags, "127.0.0.1:0")
	f.storeFlags.declare(flags)
	flags.String(&f.time, "time", testdouble.DefaultStart.Format(time.RFC3339),
		"`TIME` at which the clock stands at the start, in RFC 3339")
	flags.String(&f.controlToken, "control-token", "", "`TOKEN` of the control API, in place of a random one")
	flags.Bool(&f.untilEOF, "until-eof", false, "stop when standard input ends")
	flags.Bool(&f.anyRoute, "allow-unknown-routes", false,
		"beside a command: pass although there were requests to routes that the API lacks")
}

// double serves a test double, with the control API beside it.
func (e *eventsd) double(flags *command.Flags) func() error {
	var f doubleFlags
	f.declare(flags)
	return func() error {
		logger, err := e.program.Logger(f.log, f.verbose)
		if err != nil {
			return err
		}
		if err := f.check(flags); err != nil {
			return err
		}
		at, err := strict.Time(f.time)
		if err != nil {
			return command.Usagef("-time %w", err)
		}
		f.controlToken = cmp.Or(f.controlToken, rand.Text())
		if !form.Visible(f.controlToken) || strings.Contains(f.controlToken, "'") {
			return command.Usagef(
				"-control-token must have visible ASCII characters only, and no single quote")
		}
		if flags.Dashes != (len(flags.Args) > 0) {
			return command.Usagef(
				"double takes a command behind --, as in eventsd double -- npm test, or neither")
		}
		run := &doubleRun{e, nil, f, at, flags.Args, logger}
		return e.live(f.serverFlags, run.service())
	}
}

// doubleRun is one run of a double, alone or beside a command.
type doubleRun struct {
	e      *eventsd
	double *testdouble.Double // set by fill
	flags  doubleFlags
	start  time.Time
	child  []string // the command with its arguments; empty if the double is alone
	logger *slog.Logger
}

func (r *doubleRun) service() service {
	s := service{
		config:       Config{Logger: r.logger},
		fill:         r.fill,
		handler:      r.handler,
		store:        func(*adapter) *Store { return r.double.Server().(*api).store },
		keepAlives:   false, // see [testdouble.Double.ServeHTTP]
		pages:        r.pages,
		lines:        r.lines,
		announce:     r.e.announce,
		until:        command.StopSignal,
		drainTimeout: 0, // nothing in it is worth waiting for
		end:          r.end,
		report:       r.logger.Debug,
	}
	if r.flags.untilEOF {
		s.until = r.untilEOF
	}
	if len(r.child) > 0 { // the command gets the signals, too, and the double ends with it
		s.until = func(ctx context.Context) context.Context { return ctx }
		s.announce = r.runChild
	}
	return s
}

// fill creates the double, which has a server of its own, and returns the key of the first user.
func (r *doubleRun) fill(ctx context.Context, _ *adapter) (key string, err error) {
	seed := []byte("[]")
	if r.flags.seed != "" {
		seed, err = r.e.readInput(ctx, r.flags.seed)
		if err != nil {
			return "", fmt.Errorf("the seed %s: %w", r.flags.seed, err)
		}
	}
	c := testdouble.Config{
		BasePath: BasePath,
		NewServer: func(now func() time.Time, newID func(kind, owner string) string) testdouble.Server {
			a := newAPI(NewStore(&Config{
				Now:            now,
				NewID:          newID,
				Logger:         r.logger,
				NewEventStatus: r.flags.newEventStatus,
			}))
			a.changeLevel = slog.LevelDebug
			return a
		},
		Seed: func(s testdouble.Server) error {
			err := s.(*api).store.ApplyJSON(seed)
			if err != nil {
				return fmt.Errorf("the seed %s: %w", r.flags.seed, err)
			}
			return nil
		},
		Start:              r.start,
		Key:                r.flags.apiKey,
		AllowUnknownRoutes: r.flags.anyRoute,
	}
	if len(r.child) == 0 { // otherwise they are listed when the command has ended
		c.Logger = r.logger
	}
	r.double, err = testdouble.New(c)
	if err != nil {
		return "", err
	}
	return r.double.Key(), nil
}

// handler serves requests for the control API, and all others as the API does, but for faults.
func (r *doubleRun) handler(*adapter) http.Handler {
	control := r.double.Control(r.flags.controlToken)
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path+"/", testdouble.ControlPath+"/") {
			control.ServeHTTP(w, request)
		} else {
			r.double.ServeHTTP(w, request)
		}
	})
}

func (r *doubleRun) pages(key string) map[string]http.HandlerFunc {
	const note = `This is a test double. Its <a href="/_control/">inspector</a> shows the requests ` +
		`that come.`
	return map[string]http.HandlerFunc{
		"/":                          page(webui.Reference(note, key)),
		testdouble.ControlPath + "/": page(webui.Inspector()),
	}
}

func (r *doubleRun) lines(at greeting.Place, key string) command.Ready {
	return greeting.DoubleLines(at, key, at.Root+testdouble.ControlPath, r.flags.controlToken)
}

// runChild runs the command, which finds the double by variables of its environment.
func (r *doubleRun) runChild(ctx context.Context, lines command.Ready) error {
	return r.e.program.Child(ctx, r.child, greeting.Variables(lines))
}

// untilEOF returns a context that is done at a signal, or when standard input ends.
func (r *doubleRun) untilEOF(ctx context.Context) context.Context {
	ctx, stop := context.WithCancel(command.StopSignal(ctx))
	go func() {
		io.Copy(io.Discard, r.e.program.Stdin)
		stop()
	}()
	return ctx
}

// end prints what was wrong with the requests of the command. If anything was, a command that
// succeeded fails.
func (r *doubleRun) end(err error) error {
	isFine := len(r.child) == 0 || r.reportProblems()
	if errors.Is(err, command.Succeeded) && !isFine {
		return command.Status(1)
	}
	return err
}

// reportProblems prints what was wrong with the requests of the command, and reports whether
// nothing was.
func (r *doubleRun) reportProblems() bool {
	problems := r.double.Problems()
	for _, problem := range problems {
		r.e.program.Notice("%s", problem)
	}
	return len(problems) == 0
}

// live is the life of a server from its start to its end. Listening comes first, as no key must
// be made and shown for a server that cannot serve. A stop waits for each step to end, except
// for reading a seed and applying it, of which nothing is left then.
func (e *eventsd) live(f serverFlags, s service) error {
	logger := s.config.Logger
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	ctx = s.until(ctx)

	// Listen.
	listener, err := command.Listen(f.addr, logger)
	if err != nil {
		return err
	}
	defer listener.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}

	// Start the store.
	began := time.Now()
	a, key, err := e.start(ctx, s)
	if err != nil {
		return err
	}

	// Serve.
	root := command.URL(listener.Addr().String(), "localhost")
	at := greeting.Place{Root: root, API: root + BasePath, Data: a.db.Path()}
	public := command.NewServer(listener, withPages(a, s.handler(a), s.pages(key)), logger,
		func(r *http.Request, answered http.Header) []any {
			return s.store(a).aboutRequest(r, answered)
		})
	public.SetKeepAlivesEnabled(s.keepAlives)
	servers := []*command.Server{public}
	if forOperator := operatorServer(a, s, at.API, began); forOperator != nil {
		servers = append(servers, forOperator)
	}
	lines := s.lines(at, key)
	err = command.Serve(ctx, s.drainTimeout, func() error {
		s.report("ready", sizeOf(a)...)
		return s.announce(ctx, lines)
	}, servers)

	// Stop.
	stop()
	err = errors.Join(err, a.Err())
	closed := a.Close()
	err = cmp.Or(err, closed)
	err = s.end(err)
	if err == nil {
		logger.Info("stopped")
	}
	return err
}

// start locks and reads the data file of a service, if it has one, and fills a new store.
func (e *eventsd) start(ctx context.Context, s service) (a *adapter, key string, err error) {
	store, err := openToServe(s)
	if err != nil {
		return nil, "", err
	}
	a = newAdapter(store)
	key, err = s.fill(ctx, a)
	if err != nil {
		a.Close() // why the start failed is what matters
		return nil, "", err
	}
	return a, key, nil
}

// sizeOf is what the ready line of the log has: the version of the program and how much is stored.
func sizeOf(a *adapter) []any {
	_, number := build()
	stats := a.db.Stats()
	rows := 0
	for _, n := range stats.Rows {
		rows += n
	}
	return []any{"version", number, "rows", rows, "bytes", stats.Bytes}
}

// announce prints the lines of a server that is ready.
func (e *eventsd) announce(_ context.Context, lines command.Ready) error {
	return e.program.Printf("%s", lines)
}

// openToServe opens the store of a service.
func openToServe(s service) (*Store, error) {
	if s.data == "" {
		return NewStore(&s.config), nil
	}
	store, err := Open(s.data, &s.config)
	if err != nil {
		return nil, offline.Advised(err)
	}
	return store, nil
}

// storeOfFile is the Store of [offline.Files].
func storeOfFile(data string, log *slog.Logger) (operator.Store, error) {
	store, err := Open(data, &Config{Logger: log})
	if err != nil {
		return nil, err
	}
	return newAdapter(store), nil
}

// operatorServer returns the server of the operator's commands, or nil if there is none: a store in memory
// has none.
func operatorServer(a *adapter, s service, baseURL string, began time.Time) *command.Server {
	data, logger := a.db.Path(), s.config.Logger
	if data == "" {
		return nil
	}
	socket, err := command.Socket(rows.SocketPath(data))
	if err != nil {
		logger.Warn("the operator's commands cannot reach this server", "error", err)
		return nil
	}
	handler := operatorHandler(a, process{a, began, baseURL}, s.report)
	server := command.NewServer(socket, handler, logger, a.aboutRequest)
	server.ReadTimeout = 0 // records may be as large as the store
	return server
}

// operatorHandler answers the operator's commands. Who may open the socket may do everything.
func operatorHandler(a *adapter, p process, report operator.Report) http.Handler {
	routes := operator.StoreRoutes(a, report, "")
	routes = append(routes, operator.RevokeRoute(a, report),
		answer.Route{Operation: "GET /status", Handle: operator.Reply(200, p.status)})
	everyone := func(*http.Request) error { return nil }
	return operator.Handler("", routes, everyone, a.writeCause)
}

// process is a server that runs, as the operator's commands see it.
type process struct {
	api     *adapter
	began   time.Time
	baseURL string
}

// status is the answer to "eventsd status".
func (p process) status(answer.Request) (any, error) {
	_, number := build()
	stats := p.api.db.Stats()
	var problem *string
	if err := p.api.trouble(); err != nil {
		problem = new(offline.Advised(err).Error())
	}
	return struct {
		Version   string  `json:"version"`
		PID       int     `json:"pid"`
		StartedAt string  `json:"started_at"`
		BaseURL   string  `json:"base_url"`
		Data      string  `json:"data"`
		Bytes     int64   `json:"bytes"`
		Users     int     `json:"users"`
		Keys      int     `json:"keys"`
		Events    int     `json:"events"`
		Guests    int     `json:"guests"`
		Error     *string `json:"error"`
	}{
		Version:   number,
		PID:       os.Getpid(),
		StartedAt: p.began.UTC().Format(time.RFC3339),
		BaseURL:   p.baseURL,
		Data:      p.api.db.Path(),
		Bytes:     stats.Bytes,
		Users:     stats.Rows["user"],
		Keys:      stats.Rows["key"],
		Events:    stats.Rows["event"],
		Guests:    stats.Rows["guest"],
		Error:     problem,
	}, nil
}

// aboutRequest is what the log of a request has of its user and API key and, in a double, of its fault.
func (s *Store) aboutRequest(r *http.Request, answered http.Header) (line []any) {
	secret, _ := credential(r.Header)
	user, key, _ := s.lookupKey(secret)
	if user != "" {
		line = append(line, "user", user, "key", key)
	}
	if fault := answered.Get(testdouble.FaultHeader); fault != "" {
		line = append(line, "fault", fault)
	}
	return line
}

// withPages serves the API by a handler and, beside it, the paths that need no key.
func withPages(a *adapter, handler http.Handler, beside map[string]http.HandlerFunc) http.Handler {
	beside["/healthz"] = a.writeHealth
	beside["/openapi.json"] = func(w http.ResponseWriter, _ *http.Request) { answer.Write(w, 200, openAPI) }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := beside[r.URL.Path]
		if page == nil {
			handler.ServeHTTP(w, r)
			return
		}
		setHeaders(w, r)
		if r.Method != "GET" && r.Method != "HEAD" {
			a.writeError(w, r, answer.Method(r.URL.Path, "GET, HEAD"))
			return
		}
		page(w, r)
	})
}

// page serves a page without the headers by which other sites may read it.
func page(h http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Del("Access-Control-Allow-Origin")
		w.Header().Del("Access-Control-Expose-Headers")
		h.ServeHTTP(w, r)
	}
}

// applySeed applies a file, if one was given.
func (e *eventsd) applySeed(ctx context.Context, a *adapter, file string) error {
	if file == "" {
		return nil
	}
	records, err := e.readInput(ctx, file)
	if err != nil {
		return fmt.Errorf("the seed %s: %w", file, err)
	}
	_, err = a.applyArray(ctx, records)
	if err != nil {
		return fmt.Errorf("the seed %s: %w", file, err)
	}
	return ctx.Err()
}

// readInput reads an array that a server begins with. A stop does not wait for it, as the file may
// be a pipe to which nobody writes: the goroutine that reads is left behind, and what it reads is
// dropped.
func (e *eventsd) readInput(ctx context.Context, file string) ([]byte, error) {
	var content []byte
	var err error
	done := make(chan bool)
	go func() {
		content, err = e.files.Records(file)
		close(done)
	}()
	select {
	case <-done:
		return content, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// health asks the server that listens at an address.
func (e *eventsd) health(flags *command.Flags) func() error {
	var addr string
	flags.String(&addr, "addr", "127.0.0.1:8080", "`HOST:PORT` at which the server listens")
	return func() error {
		asked, err := command.Health(addr)
		if err != nil {
			return err
		}
		return e.program.Printf("ok: %s\n", asked)
	}
}

func (e *eventsd) printVersion(*command.Flags) func() error {
	return func() error {
		module, number := build()
		format := formats[len(formats)-1]
		return e.program.Printf("eventsd %s %s %s %s/%s\nformat: %s\n",
			module, number, runtime.Version(), runtime.GOOS, runtime.GOARCH, format)
	}
}

// build is the module and the version of this program.
func build() (module, number string) {
	info, found := debug.ReadBuildInfo()
	if !found { // this was not built from a module
		info = &debug.BuildInfo{Main: debug.Module{Path: "example.com/events"}}
	}
	return info.Main.Path, cmp.Or(version, info.Main.Version, "(devel)")
}
