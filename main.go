package events

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"example.com/events/internal/cli"
	"example.com/events/internal/httpapi"
	"example.com/events/internal/jsondb"
	"example.com/events/internal/operator"
	"example.com/events/internal/strict"
	"example.com/events/internal/testdouble"
	"example.com/events/internal/webui"
)

const defaultAddr = "127.0.0.1:8080"

// Times to finish requests at shutdown.
const (
	drainTimeout      = 8 * time.Second // Docker kills after 10 s
	childDrainTimeout = time.Second     // for processes that the command left running
)

// Run runs the command eventsd with args, without the program name, and returns its exit status: 0 on
// success, 1 if something failed or was refused, 2 for wrong arguments, and 3 if the data file is damaged,
// has a newer format or isn't one. If the status isn't 0, stderr gets the reason. But if COMMAND fails after
// "double -- COMMAND", Run returns its status without a reason.
//
// Missing flags are read from environ, as eventsd help describes. A server runs until ctx is done or the
// process gets SIGINT, SIGTERM or SIGHUP. When Run returns, a goroutine may still read stdin or finish a
// request whose connection was closed.
func Run(
	ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	c := &command{cli.Program{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}}
	err := c.run(ctx, args)
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrFormat) {
		err = &cli.ExitError{Status: 3, Message: err.Error()}
	}
	return c.ExitStatus(err)
}

// command is one run of eventsd.
type command struct{ cli.Program }

type subcommand struct {
	name    string // one word or two
	summary string
	run     func(ctx context.Context, args []string) error
}

func (c *command) subcommands() []subcommand {
	o := &operator.CLI{Program: &c.Program, Open: c.openForOperator}
	return []subcommand{
		{"serve", "serve the API (the default)", c.serve},
		{"demo", "serve a built-in example from memory", c.demo},
		{"double", "serve a test double, alone or while a command runs", c.double},
		{"key issue", "create an API key and print it", o.KeyIssue},
		{"key list", "list all API keys", o.KeyList},
		{"key revoke", "revoke an API key", o.KeyRevoke},
		{"apply", "add, change or delete records", o.Apply},
		{"dump", "print all records, for a backup", o.Dump},
		{"status", "print the state of the running server", o.Status},
		{"check", "check the data file", c.check},
		{"health", "exit with 0 if a server is healthy", o.Health},
		{"version", "print the version", c.version},
		{"help", "explain a subcommand", c.help},
	}
}

// run runs the subcommand at the beginning of args, or serve if there is none.
func (c *command) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return c.serve(ctx, args)
	}
	switch args[0] {
	case "-h", "-help", "--help":
		return c.help(ctx, args[1:])
	case "-version", "--version":
		return c.version(ctx, args[1:])
	}
	if strings.HasPrefix(args[0], "-") {
		return c.serve(ctx, args)
	}
	for _, s := range c.subcommands() {
		words := strings.Fields(s.name)
		if slices.Equal(words, args[:min(len(words), len(args))]) {
			return s.run(ctx, args[len(words):])
		}
	}
	if args[0] == "key" {
		return cli.Usagef("expected key issue, key list or key revoke; see eventsd help")
	}
	return cli.Usagef("unknown subcommand %q; see eventsd help", args[0])
}

// help explains a subcommand. Without one, it lists all of them, and for "key" those with key.
func (c *command) help(ctx context.Context, args []string) error {
	name := strings.Join(args, " ")
	if strings.HasPrefix(name, "-") {
		name = ""
	}
	list := ""
	for _, s := range c.subcommands() {
		if s.name == name {
			return s.run(ctx, []string{"-h"})
		}
		if name == "" || strings.HasPrefix(s.name, name+" ") {
			list += fmt.Sprintf("  %-10s  %s\n", s.name, s.summary)
		}
	}
	if list == "" {
		return cli.Usagef("unknown subcommand %q; see eventsd help", name)
	}
	return c.Printf("eventsd serves an API for events and guest lists, from a data file or as a test "+
		"double.\n\nUsage: eventsd [SUBCOMMAND] [FLAGS]\n\n%s\n"+
		"The exit status is 0 for success, 1 if something failed or was refused, 2 for wrong arguments,\n"+
		"and 3 if the data file is damaged, has a newer format or isn't one.\n\n"+
		"Run eventsd help SUBCOMMAND for its flags and an example.\n", list)
}

type serverFlags struct {
	*cli.Flags
	addr, logFormat *string
	verbose         *bool

	// These are nil for demo, which has a built-in store.
	seed, apiKey, newEventStatus *string
}

func newServerFlags(subcommand, addr string, help cli.Help) *serverFlags {
	f := &serverFlags{Flags: cli.NewFlags(subcommand, help)}
	f.addr = f.String("addr", addr, "listen on `HOST:PORT`; port 0 is any free port")
	f.logFormat = cli.OneOf(f.Flags, "log", "log `FORMAT`: text or json", "text", "json")
	f.verbose = f.Bool("v", false, "log every request")
	return f
}

func newStoreFlags(subcommand, addr string, help cli.Help) *serverFlags {
	f := newServerFlags(subcommand, addr, help)
	f.seed = f.String("seed", "", "fill an empty store with the records in `FILE`, or - for stdin")
	f.apiKey = f.String("api-key", "", "create the first API key with this `SECRET`")
	f.newEventStatus = newEventStatusFlag(f.Flags)
	return f
}

func newEventStatusFlag(flags *cli.Flags) *string {
	return cli.OneOf(flags, "new-event-status",
		"give new events this `STATUS`: published or draft", "published", "draft")
}

// parse parses the arguments. It reads the missing flags with these names from the environment, or all
// missing flags without names.
func (c *command) parse(flags *serverFlags, args []string, names ...string) error {
	err := c.ParseEnv(flags.Flags, args, names...)
	if err != nil || !cli.IsSet(flags.Flags, "api-key") {
		return err
	}
	problem := secretRule(*flags.apiKey)
	if problem != "" {
		return cli.Usagef("%s %s", flags.Source("api-key"), problem) // the secret isn't repeated
	}
	return nil
}

func (c *command) newLogger(flags *serverFlags) *slog.Logger {
	options := &slog.HandlerOptions{ReplaceAttr: redactAttr}
	if *flags.verbose {
		options.Level = slog.LevelDebug
	}
	if *flags.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(c.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(c.Stderr, options))
}

// redactAttr removes API keys from everything that is logged, such as paths and the messages of net/http.
func redactAttr(_ []string, a slog.Attr) slog.Attr {
	switch x := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(httpapi.Redact(x))
	case error:
		a.Value = slog.StringValue(httpapi.Redact(x.Error()))
	}
	return a
}

func (c *command) serve(ctx context.Context, args []string) error {
	flags := newStoreFlags("serve", defaultAddr, cli.Help{
		Purpose: "Serve the API from a data file or from memory. A start creates the file and an API key,\n" +
			"if they are missing.",
		Example: "serve another file on another port\n  eventsd serve -addr 127.0.0.1:9000 -data other.json",
	})
	data := cli.DataFlag(flags.Flags)
	memory := flags.Bool("memory", false, "keep everything in memory, without a data file")
	createKey := flags.Bool("first-key", true,
		"create an API key if there is none, and print it; turn off with -first-key=false")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if *memory && cli.IsSet(flags.Flags, "data") && flags.Source("data") == "-data" {
		return cli.Usagef("-memory can't be combined with -data: nothing would be written to the file")
	}
	// Listen first, so that a failed start creates no key.
	listener, err := cli.Listen(*flags.addr, flags.Source("addr"))
	if err != nil {
		return err
	}
	defer listener.Close()
	logger := c.newLogger(flags)
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
	switch {
	case *flags.seed == "":
	case store.db.Stats().Rows["user"] > 0: // other rows need a user
		logger.Warn("seed skipped", "seed", *flags.seed, "reason", "the store isn't empty")
	default:
		seed, err := c.ReadInput(*flags.seed)
		if err == nil {
			err = store.ApplyJSON(seed)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", flags.Source("seed"), err)
		}
	}
	key, err := store.createFirstKey(*flags.apiKey, *createKey)
	if err != nil {
		return err
	}
	_, _, valid := store.lookupKey(*flags.apiKey)
	if *flags.apiKey != "" && !valid {
		logger.Warn("API key ignored", "reason", "the store has keys, and this isn't a valid one",
			"source", flags.Source("api-key"))
	}
	if !store.hasValidKey() {
		fix := "run eventsd key issue"
		if *memory { // without a socket
			fix = "start again with -api-key or -seed"
		}
		logger.Warn("no valid API key in the store", "fix", fix)
	}
	reference := webui.Reference("Ask the operator of this server for an API key.", "")
	return c.serveStore(ctx, listener, store, *flags.verbose, reference, key)
}

//go:embed internal/demo/seed.json
var demoSeed []byte

func (c *command) demo(ctx context.Context, args []string) error {
	flags := newServerFlags("demo", defaultAddr, cli.Help{
		Purpose: "Serve a built-in example from memory. Its keys are svc_live_demo and svc_live_demo_2.",
		Example: "fetch an event from a running demo\n" +
			"  curl -H 'x-service-api-key: svc_live_demo' " +
			"http://127.0.0.1:8080/api/public/v1/events/analytical-engines",
	})
	if err := c.parse(flags, args); err != nil {
		return err
	}
	listener, err := cli.Listen(*flags.addr, flags.Source("addr"))
	if err != nil {
		return err
	}
	defer listener.Close()
	store := NewStore(&Config{Logger: c.newLogger(flags)})
	err = store.ApplyJSON(demoSeed)
	if err != nil {
		return err
	}
	const key = "svc_live_demo" // of the first user in demoSeed
	const note = `<span id="demo">This is a demo. Its key is public, and its data is lost when it stops.` +
		`</span>`
	return c.serveStore(ctx, listener, store, *flags.verbose, webui.Reference(note, key), key)
}

// serveStore serves the API of a store until a signal, then closes the store. With a data file, it also
// serves the operator's routes on a socket. It prints the key unless it is empty.
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
		handler = httpapi.LogRequests(handler, logger)
	}
	servers := []*httpapi.BoundServer{newServer(listener, handler, logger)}
	root := cli.BaseURL(listener.Addr().String(), "localhost")
	a.baseURL = root + BasePath
	path := store.db.Path()
	if path != "" {
		socket, err := operator.Listen(path)
		if err != nil {
			logger.Warn("operator subcommands can't reach this server", "error", err)
		} else {
			servers = append(servers, newServer(socket, a.Operator(), logger))
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
	ctx, stop := cli.NotifyStop(ctx)
	defer stop()
	logger.Info("ready", "version", buildVersion(), "bytes", store.db.Stats().Bytes)
	err := c.Printf("%s", lines)
	if err != nil {
		stop() // Serve only closes the listeners
	}
	// Serve closes the socket before another server can open the data file and create its own.
	serveErr := httpapi.Serve(ctx, drainTimeout, servers...)
	closeErr := store.Close() // includes the error that stopped writes
	err = cmp.Or(err, serveErr, closeErr)
	if err == nil {
		logger.Info("stopped")
	}
	return err
}

// double makes a double with a listener, and serves it alone or while a command runs.
func (c *command) double(ctx context.Context, args []string) error {
	flags := newStoreFlags("double", "127.0.0.1:0", cli.Help{
		Purpose: "Serve a test double, alone or while COMMAND runs. COMMAND finds it in EVENTS_BASE_URL,\n" +
			"EVENTS_API_KEY and EVENTS_CONTROL_URL, and this program in EVENTSD. eventsd exits with the\n" +
			"status of COMMAND, or with 1 if COMMAND succeeds in spite of a mistake, such as an unsafe\n" +
			"retry or a request to an unknown route.",
		Operands: "[-- COMMAND ARGS]",
		Example:  "test a client\n  eventsd double -- npm test",
	})
	start := testdouble.DefaultStart
	flags.Func("time", "start the clock at `TIME` (default "+start.Format(time.RFC3339)+")",
		func(value string) (err error) {
			start, err = strict.ParseTime(value)
			return err
		})
	untilEOF := flags.Bool("until-eof", false, "stop when stdin ends")
	problems := &testdouble.ProblemList{}
	kinds := ""
	for _, kind := range slices.Sorted(maps.Keys(testdouble.Kinds)) {
		kinds += "\n\t  " + kind + ": " + testdouble.Kinds[kind]
	}
	flags.Func("allow", "don't fail because of problems of these `KINDS`, separated by commas:"+kinds,
		func(value string) error { return problems.Allow(strings.Split(value, ",")...) })
	// Other variables are meant for a server, or would change the suite from outside.
	if err := c.parse(flags, args, "addr", "log", "v"); err != nil {
		return err
	}
	child := flags.Args()
	dashes := slices.Contains(args[:len(args)-len(child)], "--")
	switch {
	case dashes != (len(child) > 0): // "--" without a command, or a command without it
		return cli.Usagef(`put the command after "--": eventsd double -- npm test`)
	case *untilEOF && (len(child) > 0 || *flags.seed == "-"):
		return cli.Usagef("-until-eof can't be combined with a command or -seed -: both read stdin")
	}
	listener, err := cli.Listen(*flags.addr, flags.Source("addr"))
	if err != nil {
		return err
	}
	defer listener.Close()
	d := &doubleServer{
		start:          start,
		seed:           []byte("[]"),
		apiKey:         *flags.apiKey,
		newEventStatus: *flags.newEventStatus,
		verbose:        *flags.verbose,
		logger:         c.newLogger(flags),
		problems:       problems,
	}
	if *flags.seed != "" {
		d.seed, err = c.ReadInput(*flags.seed)
		if err != nil {
			return fmt.Errorf("-seed: %w", err)
		}
	}
	first, err := d.newDouble()
	if err != nil {
		return err
	}
	d.current.Store(first)
	if len(child) > 0 {
		return c.serveChild(ctx, listener, d, child)
	}
	return c.serveDouble(ctx, listener, d, *untilEOF)
}

// serveDouble serves a double until a signal or, with untilEOF, until stdin ends.
func (c *command) serveDouble(ctx context.Context, l net.Listener, d *doubleServer, untilEOF bool) error {
	ctx, stop := cli.NotifyStop(ctx)
	defer stop()
	if untilEOF {
		go func() {
			io.Copy(io.Discard, c.Stdin)
			stop()
		}()
	} else { // the program that writes stdin asks for the problems by itself
		d.problems.Logger = d.logger
	}
	root := cli.BaseURL(l.Addr().String(), "localhost")
	control := root + testdouble.ControlPath
	err := c.Printf("%s", "base_url: "+root+BasePath+"\n"+
		"api_key: "+d.current.Load().key+"\n"+
		"control_url: "+control+"\n"+
		"reference: "+root+"/\n"+
		"inspector: "+control+"/\n"+
		`ready: curl -d '{"name":"Grace"}' '`+control+"/keys'\n")
	if err != nil {
		return err
	}
	err = httpapi.Serve(ctx, 0, newServer(l, d, d.logger))
	d.current.Load().Close()
	return err
}

// doubleServer serves a double with its control API and pages. A reset replaces the double.
type doubleServer struct {
	start          time.Time
	seed           []byte // records
	apiKey         string // of the first user; may be empty
	newEventStatus string
	verbose        bool
	logger         *slog.Logger
	problems       *testdouble.ProblemList

	current atomic.Pointer[runningDouble]
}

type runningDouble struct {
	*testdouble.Double
	handler http.Handler
	key     string // of the first user
}

func (s *doubleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.current.Load().handler.ServeHTTP(w, r)
}

// reset replaces the double with a new one. Running requests finish in the old one.
func (s *doubleServer) reset() error {
	d, err := s.newDouble()
	if err == nil {
		s.current.Swap(d).Close()
	}
	return err
}

// newDouble creates a double in its initial state.
func (s *doubleServer) newDouble() (*runningDouble, error) {
	d, err := testdouble.New(s.start, s.problems)
	if err != nil {
		return nil, err
	}
	a := newAPI(NewStore(&Config{
		Now: d.Now, Logger: s.logger, NewEventStatus: s.newEventStatus,
	}))
	a.changeLevel = slog.LevelDebug
	served, err := d.Wrap(a)
	if err == nil {
		err = a.store.ApplyJSON(s.seed)
	}
	if err != nil {
		return nil, fmt.Errorf("-seed: %w", err)
	}
	key := s.apiKey
	if key == "" {
		key, _, err = a.store.IssueKey(testdouble.OwnerID)
	} else {
		_, err = a.store.Put(Record{Key: &Key{UserID: testdouble.OwnerID, Secret: key}})
	}
	if err != nil {
		return nil, fmt.Errorf("no API key for the first user: %w", err)
	}
	control := d.Control(s.reset)
	control.Logger = s.logger
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path+"/", testdouble.ControlPath+"/") {
			httpapi.SetSecurityHeaders(w.Header())
			control.ServeHTTP(w, r)
		} else {
			served.ServeHTTP(w, r)
		}
	})
	const note = `This is a test double. Its <a href="/_control/">inspector</a> shows its requests.`
	reference, withoutKey := webui.Reference(note, key), webui.Reference(note, "")
	handler := withPages(api, map[string]http.Handler{
		"/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if testdouble.IsLocal(r.Host) {
				reference.ServeHTTP(w, r)
			} else {
				withoutKey.ServeHTTP(w, r) // another web page may read it
			}
		}),
		testdouble.ControlPath:       webui.Inspector(),
		testdouble.ControlPath + "/": webui.Inspector(),
		"/healthz":                   jsonPage(healthy),
		"/openapi.json":              jsonPage(openAPI),
	})
	if s.verbose {
		handler = httpapi.LogRequests(handler, s.logger)
	}
	return &runningDouble{d, handler, key}, nil
}

// serveChild serves a double while a command runs. It returns the exit status of the command. If the command
// succeeded but the double noticed problems, the status is 1.
func (c *command) serveChild(ctx context.Context, l net.Listener, d *doubleServer, child []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- httpapi.Serve(serving, childDrainTimeout, newServer(l, d, d.logger)) }()
	root := cli.BaseURL(l.Addr().String(), "localhost")
	status, err := c.RunCommand(ctx, child, []string{
		"EVENTS_BASE_URL=" + root + BasePath,
		"EVENTS_API_KEY=" + d.current.Load().key,
		"EVENTS_CONTROL_URL=" + root + testdouble.ControlPath,
		"EVENTSD=" + program,
	})
	stop()
	serveErr := <-ended
	err = cmp.Or(err, serveErr)
	if err != nil {
		return err
	}
	d.current.Load().Close()
	problems := d.problems.All()
	for _, p := range problems {
		c.Messagef("%s; use -allow %s if that is intended", httpapi.Redact(p.Text), p.Kind)
	}
	if status == 0 && len(problems) > 0 {
		status = 1
	}
	return &cli.ExitError{Status: status}
}

func newServer(l net.Listener, h http.Handler, logger *slog.Logger) *httpapi.BoundServer {
	s := httpapi.NewServer(h)
	s.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelWarn)
	return &httpapi.BoundServer{Server: s, Listener: l}
}

// openForOperator opens a data file for subcommands without a server.
func (c *command) openForOperator(data string) (http.Handler, io.Closer, error) {
	flags := cli.NewFlags("", cli.Help{})
	newEventStatus := newEventStatusFlag(flags)
	err := c.ParseEnv(flags, nil)
	if err != nil {
		return nil, nil, err
	}
	_, err = os.Stat(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: check -data and EVENTSD_DATA, or start the server once to create "+
			"the file", err)
	}
	options := &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: redactAttr}
	store, err := Open(data, &Config{
		Logger:         slog.New(slog.NewTextHandler(c.Stderr, options)),
		NewEventStatus: *newEventStatus,
	})
	if err != nil {
		return nil, nil, err
	}
	a := &api{store: store} // only for operators
	return a.Operator(), store, nil
}

func (c *command) check(_ context.Context, args []string) error {
	flags := cli.NewFlags("check", cli.Help{
		Purpose: "Check the data file and print a summary. The file isn't changed, and a server may be\n" +
			"running. If the file is damaged, has a newer format or isn't a data file, the exit status is 3.",
		Example: "check a copy\n  eventsd check -data copy.json",
	})
	data := cli.DataFlag(flags)
	if err := c.Parse(flags, args); err != nil {
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

// version can be set by the linker: -ldflags "-X example.com/events.version=v1.2.3".
var version string

// buildVersion returns version or, if it is empty, the tag of the build.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return cmp.Or(version, info.Main.Version, "(devel)")
}

func (c *command) version(_ context.Context, args []string) error {
	flags := cli.NewFlags("version", cli.Help{Purpose: "Print the version of eventsd and of its data files."})
	if err := c.Parse(flags, args); err != nil {
		return err
	}
	return c.Printf("eventsd %s %s %s/%s\nformat: %s\n",
		buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, formats[len(formats)-1])
}
