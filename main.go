package events

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"example.com/events/internal/cli"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/jsondb"
	"example.com/events/internal/operator"
	"example.com/events/internal/testdouble"
	"example.com/events/internal/webui"
)

const defaultAddr = "127.0.0.1:8080"

// Times for requests in flight at shutdown.
const (
	drainTimeout      = 8 * time.Second // Docker kills after 10 s
	childDrainTimeout = time.Second     // requests of processes that the command left running
)

// Run runs the command eventsd, whose package main is cmd/eventsd, with args, which exclude the name of the
// program. It returns the exit status: 0 on success, 1 if something failed or was refused, and 2 for wrong
// arguments. After "double -- COMMAND" it is the status of that command. The cause of a failure is one line
// on stderr.
//
// Flags that aren't given are read from environ, which has the form of [os.Environ]: -new-event-status from
// EVENTSD_NEW_EVENT_STATUS. A server runs until ctx is done or the process gets SIGINT, SIGTERM or SIGHUP.
// Run looks at nothing else of the process. All goroutines that it started have ended when it returns,
// except one that reads stdin.
func Run(
	ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	c := &command{cli.Program{
		Name:    "eventsd",
		About:   "eventsd serves the public REST API of an events networking service.",
		Environ: environ,
		Stdin:   stdin,
		Stdout:  stdout,
		Stderr:  stderr,
	}}
	o := &operator.Commands{Program: &c.Program, Open: c.openForOperator}
	return c.Program.Run(ctx, []cli.Command{
		{Name: "serve", Summary: "serve the API; also without a subcommand", Run: c.serve},
		{Name: "demo", Summary: "serve a built-in example from memory", Run: c.demo},
		{Name: "double", Summary: "serve a test double, alone or while a command runs", Run: c.double},
		{Name: "key issue", Summary: "create an API key for a user and print it", Run: o.KeyIssue},
		{Name: "key list", Summary: "list the keys, without their secrets", Run: o.KeyList},
		{Name: "key revoke", Summary: "revoke a key", Run: o.KeyRevoke},
		{Name: "apply", Summary: "put an array of records into the store, all or none", Run: o.Apply},
		{Name: "dump", Summary: "print the store as an array of records", Run: o.Dump},
		{Name: "status", Summary: "print what the running server holds", Run: o.Status},
		{Name: "check", Summary: "read the data file and report what is in it", Run: c.check},
		{Name: "health", Summary: "exit with 0 if the server at an address is healthy", Run: o.Health},
		{Name: "version", Summary: "print the version", Run: c.version},
	}, args)
}

// command is one run of eventsd.
type command struct{ cli.Program }

// storeFlags are the flags of servers whose store isn't built in.
type storeFlags struct {
	*cli.ServerFlags
	seed           *string
	apiKey         *string
	newEventStatus *string
}

func (c *command) newStoreFlags(subcommand, operands, addr string) storeFlags {
	flags := c.NewServerFlags(subcommand, operands, addr)
	return storeFlags{
		ServerFlags: flags,
		seed: flags.String("seed", "",
			"`FILE` with an array of records for an empty store, or - for stdin"),
		apiKey:         flags.String("api-key", "", "`SECRET` of the first key"),
		newEventStatus: newEventStatusFlag(flags.Flags),
	}
}

func newEventStatusFlag(flags *cli.Flags) *string {
	return flags.OneOf("new-event-status", "`STATUS` of new events: draft or published", "published", "draft")
}

// parse parses all flags.
func (f storeFlags) parse(args []string) error {
	err := f.ParseEnv(args)
	if err != nil {
		return err
	}
	problem := secretRule(*f.apiKey)
	if f.Given("api-key") && problem != "" { // the secret isn't repeated
		return cli.Usagef("-api-key %s", problem)
	}
	return nil
}

// serve serves the store in a data file, or one in memory.
func (c *command) serve(ctx context.Context, args []string) error {
	flags := c.newStoreFlags("serve", "", defaultAddr)
	data := flags.DataFlag()
	memory := flags.Bool("memory", false, "keep everything in memory, without a data file")
	createKey := flags.Bool("first-key", true, "if the store has no key, create one and print it")
	if err := flags.parse(args); err != nil {
		return err
	}
	listener, err := flags.Listen() // first: a server that can't serve creates no key
	if err != nil {
		return err
	}
	defer listener.Close()
	logger := flags.Logger()
	config := &Config{Logger: logger, NewEventStatus: *flags.newEventStatus}
	var store *Store
	if *memory {
		store = NewStore(config)
	} else {
		store, err = Open(*data, config)
	}
	if err != nil {
		return err
	}
	defer store.Close()
	err = c.applySeed(store, *flags.seed)
	if err != nil {
		return err
	}
	key, err := store.firstKey(*flags.apiKey, *createKey)
	if err != nil {
		return err
	}
	_, _, valid := store.lookupKey(*flags.apiKey)
	if *flags.apiKey != "" && !valid {
		logger.Warn("-api-key ignored: the store has keys, and this isn't a valid one")
	}
	reference := webui.Reference("The operator of this server issues keys.", "")
	return c.serveStore(ctx, listener, store, *flags.Verbose, reference, key)
}

// applySeed applies the records in a file, if one is given, to an empty store.
func (c *command) applySeed(store *Store, file string) error {
	if file != "" && store.db.Stats().Rows["user"] > 0 { // all other rows belong to a user
		store.cfg.Logger.Warn("seed skipped: the store isn't empty", "seed", file)
		return nil
	}
	s, err := c.readSeed(file)
	if err != nil {
		return err
	}
	return s.apply(store)
}

// seed is an array of records from a file.
type seed struct {
	file    string
	records []byte
}

// readSeed reads a seed. Without a file, it is empty.
func (c *command) readSeed(file string) (seed, error) {
	if file == "" {
		return seed{records: []byte("[]")}, nil
	}
	records, err := c.ReadInput(file)
	if err != nil {
		return seed{}, fmt.Errorf("seed: %w", err)
	}
	return seed{file, records}, nil
}

func (s seed) apply(store *Store) error {
	err := store.ApplyJSON(s.records)
	if err != nil {
		return fmt.Errorf("seed %s: %w", s.file, err)
	}
	return nil
}

//go:embed internal/demo/seed.json
var demoSeed []byte

// demo serves the built-in example.
func (c *command) demo(ctx context.Context, args []string) error {
	flags := c.NewServerFlags("demo", "", defaultAddr)
	if err := flags.ParseEnv(args); err != nil {
		return err
	}
	listener, err := flags.Listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	store := NewStore(&Config{Logger: flags.Logger()})
	err = store.ApplyJSON(demoSeed)
	if err != nil {
		return err
	}
	const key = "svc_live_demo" // of the first user in demoSeed
	const note = `<span id="demo">This is a demo: everyone knows its key, and when it stops it forgets ` +
		`everything.</span>`
	return c.serveStore(ctx, listener, store, *flags.Verbose, webui.Reference(note, key), key)
}

// serveStore serves the API of a store until a signal, and closes the store. If the store has a data file, it
// also serves the operator's routes. If key isn't empty, it is printed.
func (c *command) serveStore(
	ctx context.Context, listener net.Listener, store *Store, verbose bool,
	reference http.Handler, key string,
) error {
	logger := store.cfg.Logger
	a := newAPI(store)
	handler := withPages(a, map[string]http.Handler{
		"/":             reference,
		"/healthz":      http.HandlerFunc(a.serveHealth),
		"/openapi.json": jsonPage(openAPI),
	})
	if verbose {
		handler = httpapi.LogRequests(handler, logger, store.authenticate)
	}
	servers := []*httpapi.Server{newServer(listener, handler, logger)}
	root := cli.BaseURL(listener.Addr().String(), "localhost")
	a.baseURL = root + BasePath
	path := store.db.Path()
	if path != "" {
		socket, err := operator.Listen(path)
		if err != nil {
			logger.Warn("operator subcommands can't reach this server", "error", err)
		} else {
			defer socket.Close()
			s := newServer(socket, a.Operator(), logger)
			s.ReadTimeout = 0 // records may take long to arrive
			servers = append(servers, s)
		}
	}
	lines := "base_url: " + root + BasePath + "\n"
	if key != "" {
		lines += "api_key: " + key + "\n"
	}
	lines += "data: " + cmp.Or(path, "memory") + "\n" +
		"reference: " + root + "/\n" +
		`ready: curl -H "x-service-api-key: ` + cmp.Or(key, "<API_KEY>") + `" ` +
		"'" + root + BasePath + "/events'\n"
	logger.Info("ready", "version", cli.BuildVersion(version), "bytes", store.db.Stats().Bytes)
	err := c.serveUntilSignal(ctx, drainTimeout, lines, servers...)
	closeErr := store.Close() // the error that stopped writes, if there was one
	err = cmp.Or(err, closeErr)
	if err == nil {
		logger.Info("stopped")
	}
	return err
}

// double serves a test double, alone or while a command runs.
func (c *command) double(ctx context.Context, args []string) error {
	flags := c.newStoreFlags("double", "[-- COMMAND ARGS]", "127.0.0.1:0")
	var start time.Time
	flags.TextVar(&start, "time", testdouble.DefaultStart, "initial `TIME` of the clock")
	token := flags.String("control-token", "", "`TOKEN` of the control API, instead of a random one")
	untilEOF := flags.Bool("until-eof", false, "stop when stdin ends")
	allowUnknown := flags.Bool("allow-unknown-routes", false,
		"let the command request routes that the API doesn't have")
	if err := flags.parse(args); err != nil {
		return err
	}
	child := flags.Args()
	switch {
	case *token == "--":
		return cli.Usagef("-control-token needs a TOKEN")
	case *token != url.QueryEscape(*token):
		return cli.Usagef("-control-token must consist of A-Z a-z 0-9 - . _ ~")
	case slices.Contains(args[:len(args)-len(child)], "--") != (len(child) > 0):
		return cli.Usagef("double needs a command after --, as in eventsd double -- npm test, or neither")
	case *untilEOF && (len(child) > 0 || *flags.seed == "-"):
		return cli.Usagef("-until-eof excludes a command and -seed -: stdin is theirs")
	}
	listener, err := flags.Listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	logger := flags.Logger()
	config := testdouble.Config{Start: start, Key: *flags.apiKey, AllowUnknownRoutes: *allowUnknown}
	if len(child) == 0 { // otherwise the problems are printed when the command has ended
		config.Logger = logger
	}
	d, err := c.newDouble(config, *flags.seed, &Config{Logger: logger, NewEventStatus: *flags.newEventStatus})
	if err != nil {
		return err
	}
	*token = cmp.Or(*token, rand.Text())
	handler := doubleHandler(d, *token)
	if *flags.Verbose {
		handler = httpapi.LogRequests(handler, logger, func(r *http.Request) (httpapi.Caller, error) {
			return d.Server().(*api).store.authenticate(r)
		})
	}
	s := newServer(listener, handler, logger)
	s.SetKeepAlivesEnabled(false) // clients resend dropped requests on connections that were used before
	root := cli.BaseURL(listener.Addr().String(), "localhost")
	control := root + testdouble.ControlPath
	if len(child) > 0 {
		return c.serveChild(ctx, s, d, child,
			"EVENTS_BASE_URL="+root+BasePath,
			"EVENTS_API_KEY="+d.Key(),
			"EVENTS_CONTROL_URL="+control,
			"EVENTS_CONTROL_TOKEN="+*token)
	}
	if *untilEOF {
		var stop context.CancelFunc
		ctx, stop = cli.UntilEOF(ctx, c.Stdin)
		defer stop()
	}
	lines := "base_url: " + root + BasePath + "\n" +
		"api_key: " + d.Key() + "\n" +
		"control_url: " + control + "\n" +
		"control_token: " + *token + "\n" +
		"reference: " + root + "/\n" +
		"inspector: " + control + "/#token=" + *token + "\n" +
		"ready: curl -H 'Authorization: Bearer " + *token + `' -d '{"name":"Grace"}' '` + control + "/keys'\n"
	return c.serveUntilSignal(ctx, 0, lines, s)
}

// newDouble returns a double whose stores are configured by storeConfig, except for Now and NewID. They begin
// with the records in the seed file, if one is given.
func (c *command) newDouble(
	config testdouble.Config, seedFile string, storeConfig *Config,
) (*testdouble.Double, error) {
	seed, err := c.readSeed(seedFile)
	if err != nil {
		return nil, err
	}
	config.BasePath = BasePath
	config.NewServer = func(now func() time.Time, newID func(kind, owner string) string) testdouble.Server {
		sc := *storeConfig
		sc.Now = now
		sc.NewID = newID
		a := newAPI(NewStore(&sc))
		a.changeLevel = slog.LevelDebug
		return a
	}
	config.Seed = func(s testdouble.Server) error { return seed.apply(s.(*api).store) }
	return testdouble.New(config)
}

// doubleHandler returns the handler of a double with its control API and its pages.
func doubleHandler(d *testdouble.Double, token string) http.Handler {
	control := d.Control(token)
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path+"/", testdouble.ControlPath+"/") {
			control.ServeHTTP(w, r)
		} else {
			d.ServeHTTP(w, r)
		}
	})
	const note = `This is a test double. Its <a href="/_control/">inspector</a> shows its requests.`
	return withPages(both, map[string]http.Handler{
		"/":                          webui.Reference(note, d.Key()),
		testdouble.ControlPath + "/": webui.Inspector(),
		"/healthz":                   jsonPage(healthy),
		"/openapi.json":              jsonPage(openAPI),
	})
}

// serveChild serves a double while a command runs, and ends with the status of the command. If the command
// succeeded but requested unknown routes, the status is 1.
func (c *command) serveChild(
	ctx context.Context, s *httpapi.Server, d *testdouble.Double, child []string, variables ...string,
) error {
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- httpapi.Serve(serving, childDrainTimeout, s) }()
	status, err := c.RunCommand(ctx, child, variables)
	stop()
	serveErr := <-ended
	err = cmp.Or(err, serveErr)
	if err != nil {
		return err
	}
	problems := d.Problems()
	for _, problem := range problems {
		c.Notify("%s; -allow-unknown-routes lets it pass", problem)
	}
	if status == 0 && len(problems) > 0 {
		status = 1
	}
	return &cli.ExitError{Status: status}
}

func newServer(l net.Listener, h http.Handler, logger *slog.Logger) *httpapi.Server {
	s := httpapi.NewServer(h)
	s.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	return &httpapi.Server{Server: s, Listener: l}
}

// serveUntilSignal prints the lines of servers that listen, and serves until ctx is done, a signal arrives
// or a server fails.
func (c *command) serveUntilSignal(
	ctx context.Context, drain time.Duration, lines string, servers ...*httpapi.Server,
) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	err := c.Printf("%s", lines)
	if err != nil {
		return err
	}
	return httpapi.Serve(ctx, drain, servers...)
}

// openForOperator opens a data file for the operator's subcommands.
func (c *command) openForOperator(data string) (http.Handler, io.Closer, error) {
	_, err := os.Stat(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: give the -data of the server; a server in memory has none", err)
	}
	flags := c.NewFlags("serve", "")
	status := newEventStatusFlag(flags)
	err = flags.ParseEnv(nil) // records are applied as the server would apply them
	if err != nil {
		return nil, nil, err
	}
	options := &slog.HandlerOptions{Level: slog.LevelWarn}
	logger := slog.New(slog.NewTextHandler(c.Stderr, options))
	store, err := Open(data, &Config{Logger: logger, NewEventStatus: *status})
	if err != nil {
		return nil, nil, err
	}
	return newAPI(store).Operator(), store, nil
}

// check reads the data file and prints what is in it.
func (c *command) check(_ context.Context, args []string) error {
	flags := c.NewFlags("check", "")
	data := flags.DataFlag()
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := jsondb.Check(*data, newStore(nil).options())
	if err != nil {
		return err
	}
	return c.Printf("file: %s\nformat: %s\nbytes: %d\ncommits: %d\n"+
		"users: %d\nkeys: %d\nevents: %d\nguests: %d\nfound: %s\n",
		*data, r.Format, r.Size, r.Commits,
		r.Rows["user"], r.Rows["key"], r.Rows["event"], r.Rows["guest"], cmp.Or(r.Torn, "clean"))
}

// version is set by the linker if the build knows no tag: -ldflags "-X example.com/events.version=v1.2.3".
var version string

func (c *command) version(_ context.Context, args []string) error {
	flags := c.NewFlags("version", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return c.Printf("eventsd %s %s %s/%s\nformat: %s\n",
		cli.BuildVersion(version), runtime.Version(), runtime.GOOS, runtime.GOARCH, formats[len(formats)-1])
}
