package events

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/command"
	"example.com/events/internal/double"
	"example.com/events/internal/form"
	"example.com/events/internal/operator"
	"example.com/events/internal/pages"
	"example.com/events/internal/rows"
	"example.com/events/internal/strict"
)

//go:embed internal/demo/seed.json
var demoSeed []byte

// demoKey is in demoSeed.
const demoKey = "svc_live_demo"

// version is set by the linker if the build knows no tag:
// -ldflags "-X example.com/events.version=v1.2.3".
var version string

// Run is the command eventsd: it does what args ask for, which do not hold the
// program's name, and returns the exit status. Flags that are not given are read from
// environ, which has the form of [os.Environ]: -new-event-status from EVENTSD_NEW_EVENT_STATUS
// and so on. Run looks at nothing else of the environment of the process.
// A server stops when ctx is done, or at SIGINT or SIGTERM. When Run returns, all that it
// began has ended, but for a read of standard input or of a seed that never ends.
//
// The status is 0 on success. It is 2 if something was refused, such as a bad flag
// or a damaged file. It is 1 if something failed, such as writing a file, or if
// check finds damage, or health a server that is not well. After "double -- COMMAND"
// it is that of the command. An error is one line on stderr.
func Run(
	ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	e := &eventsd{ctx: ctx}
	e.Program = command.Program{
		Name:   "eventsd",
		About:  "eventsd serves the public REST API of an events networking service.",
		Stdin:  stdin,
		Stdout: stdout,
		Stderr: stderr,

		Environ:   environ,
		Variables: map[string]string{},
	}
	for name := range strings.FieldsSeq(variables) {
		e.Variables[name] = ""
	}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		if _, isOurs := e.Variables[name]; isOurs {
			e.Variables[name] = value
		}
	}
	e.addCommands()
	err := e.Program.Run(args)
	if errors.Is(err, ErrNotWritten) {
		err = command.Failed(err)
	}
	if errors.Is(err, context.Canceled) {
		err = command.Failed(ctx.Err()) // nil if a signal ended the start: that is no failure
	}
	return e.Exit(err)
}

// variables set the flags of the subcommands. Those with _FILE name a file whose first line
// is the value.
const variables = `
	EVENTSD_ADDR EVENTSD_ALLOW_UNKNOWN_ROUTES EVENTSD_API_KEY EVENTSD_API_KEY_FILE
	EVENTSD_CONTROL_TOKEN EVENTSD_CONTROL_TOKEN_FILE EVENTSD_DATA EVENTSD_EMAIL EVENTSD_FAULTS
	EVENTSD_FIRST_KEY EVENTSD_LOG EVENTSD_MEMORY EVENTSD_NAME EVENTSD_NEW_EVENT_STATUS
	EVENTSD_READY_FILE EVENTSD_SALVAGE EVENTSD_SEED EVENTSD_STRICT EVENTSD_TIME EVENTSD_UNTIL_EOF
	EVENTSD_USER EVENTSD_V`

// eventsd is one run of the command: the program and the values of its flags. For the
// operator's subcommands it is what works on a data file.
type eventsd struct {
	command.Program
	ctx context.Context

	addr, seed, newStatus, readyFile, log string
	apiKey, startTime, controlToken       string
	memory, firstKey, untilEOF, verbose   bool
	faults                                string
	strict, anyRoute                      bool
}

const serveFlags = "addr ready-file log v data seed api-key memory first-key new-event-status"

// addCommands declares the flags and adds the subcommands. The first subcommand is what
// eventsd does without one.
func (e *eventsd) addCommands() {
	fs := &e.Flags
	fs.StringVar(&e.addr, "addr", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 is any free one")
	fs.StringVar(&e.readyFile, "ready-file", "", "`FILE` for the ready lines as JSON, removed at the end")
	fs.StringVar(&e.log, "log", "text", "`FORMAT` of the log on stderr: text or json")
	fs.BoolVar(&e.verbose, "v", false, "log a line for each request")

	fs.StringVar(&e.seed, "seed", "", "`FILE` with an array of records for an empty store, or - for stdin")
	fs.StringVar(&e.apiKey, "api-key", "", "`SECRET` of the first key, in place of one that is made")
	fs.BoolVar(&e.memory, "memory", false, "keep everything in memory, without a file")
	fs.BoolVar(&e.firstKey, "first-key", true, "if the store has no key, make one and show it")
	fs.StringVar(&e.newStatus, "new-event-status", "published", "`STATUS` of a new event: draft or published")

	fs.StringVar(&e.startTime, "time", double.Start.Format(time.RFC3339),
		"`TIME` at which the clock stands at the start, in RFC 3339")
	fs.StringVar(&e.controlToken, "control-token", "", "`TOKEN` of the control API, in place of a random one")
	fs.BoolVar(&e.untilEOF, "until-eof", false, "stop when standard input ends")
	fs.StringVar(&e.faults, "faults", "", "`FILE` with an array of faults to begin with")
	fs.BoolVar(&e.strict, "strict", false,
		"beside a command: fail if a fault was met less often than it says")
	fs.BoolVar(&e.anyRoute, "allow-unknown-routes", false,
		"beside a command: pass although there were requests to routes that the API lacks")

	e.Add("serve", "", "serve the API; also without a subcommand", serveFlags, e.serve)
	e.Add("demo", "", "serve a built-in example from memory, with a curl line to try",
		"addr ready-file log v", e.demo)
	e.Add("double", "[-- COMMAND ARGS]",
		"serve a test double from memory, alone or for as long as a command runs",
		"addr=127.0.0.1:0 ready-file log v seed api-key "+
			"time control-token until-eof faults strict allow-unknown-routes", e.double)
	e.Add("openapi", "", "print openapi.json", "", func() error { return e.Printf("%s", openAPI) })
	e.Add("health", "", "exit 0 if the server with the same flags and environment answers",
		serveFlags, e.health)
	e.Add("version", "", "print the version", "", e.printVersion)
	e.Add("check", "", "read the data file, print what is in it and change nothing", "data", e.check)
	operator.AddCommands(&e.Program, e)
	e.Add("help", "[SUBCOMMAND]", "explain eventsd or a subcommand", "", e.Help)
}

func (e *eventsd) printVersion() error {
	module, number := build()
	return e.Printf("eventsd %s %s %s %s/%s\n",
		module, number, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// build is the module and the version of this program.
func build() (module, number string) {
	info, found := debug.ReadBuildInfo()
	if !found { // this was not built from a module
		info = &debug.BuildInfo{Main: debug.Module{Path: "example.com/events"}}
	}
	return info.Main.Path, cmp.Or(version, info.Main.Version, "(devel)")
}

// health asks the server that the same flags and environment would start.
func (e *eventsd) health() error {
	asked, err := command.Health(e.addr, e.readyFile)
	if err != nil {
		return command.Failed(err)
	}
	return e.Printf("ok: %s\n", asked)
}

// serve serves the store of the data file.
func (e *eventsd) serve() error {
	if e.newStatus != "draft" && e.newStatus != "published" {
		return fmt.Errorf("-new-event-status must be draft or published, not %q", e.newStatus)
	}
	if e.Data == "" {
		return errors.New("-data is empty: give the path of the data file")
	}
	if filepath.Clean(e.readyFile) == filepath.Clean(e.Data) {
		return errors.New("-ready-file must be a file of its own, not that of -data, as it is removed")
	}
	if e.Given["data"] && e.Given["memory"] && e.memory {
		return errors.New("-memory and -data exclude each other; give one of them")
	}
	return e.runServer(func(s *server) error {
		s.note = "The operator of this server issues keys."
		var store *Store
		var err error
		if e.memory && !e.Given["data"] { // the flag wins over EVENTSD_MEMORY
			store = NewStore(&s.Config)
		} else {
			store, err = Open(e.Data, &s.Config)
		}
		if errors.Is(err, ErrInUse) {
			return command.Failed(fmt.Errorf("%w; stop that first", err))
		}
		if err != nil {
			return advised(err)
		}
		s.api = newAPI(store)
		return s.fill()
	})
}

// demo serves the built-in example.
func (e *eventsd) demo() error {
	return e.runServer(func(s *server) error {
		s.api = newAPI(NewStore(&s.Config))
		s.pageKey = demoKey
		s.note = `<span id="demo">This is a demo: everyone knows its key, and when it stops it ` +
			`forgets everything.</span>`
		s.setReady(demoKey, demoKey)
		return s.api.ApplyJSON(demoSeed)
	})
}

// double serves a test double, with the control API beside it.
func (e *eventsd) double() error {
	token := cmp.Or(e.controlToken, rand.Text())
	at, err := strict.Time(e.startTime)
	if err != nil {
		return fmt.Errorf("-time %w", err)
	}
	if !form.Visible(token) || strings.Contains(token, "'") {
		return errors.New("-control-token must have visible ASCII characters only, and no single quote")
	}
	if e.Dashes != (len(e.Args) > 0) {
		return errors.New("double takes a command behind --, as in eventsd double -- npm test, or neither")
	}
	if e.Dashes && e.untilEOF {
		return errors.New("-until-eof excludes a command: the double ends with it")
	}
	d := double.New(BasePath)
	d.At = at
	d.Strict = e.strict
	d.AnyRoute = e.anyRoute
	err = e.runServer(func(s *server) error {
		d.Unknown = func(problem string) { s.Logger.Warn(problem) }
		s.Now = d.Now
		s.NewID = d.NewID
		s.api = newAPI(NewStore(&s.Config))
		s.report = s.Logger.Debug
		err := d.Begin(s.api, func() error {
			if err := s.applySeed(); err != nil {
				return err
			}
			if err := s.setFaults(d); err != nil {
				return err
			}
			return s.ownerKey()
		})
		if err != nil {
			return cmp.Or(e.checkAPIKey(), err)
		}
		s.handler = d.Handler(s.api)
		s.control = d.Control(token, s.report, s.api.writeError)
		s.note = `This is a test double. Its <a href="/_control/">inspector</a> shows the requests that come.`
		control := s.url + double.ControlPath
		s.ready = command.Ready{
			BaseURL:      s.url + BasePath,
			Key:          s.pageKey,
			ControlURL:   control,
			ControlToken: token,
			Inspector:    control + "/#token=" + url.QueryEscape(token),
			Ready: "curl -H 'Authorization: Bearer " + token + `' -d '{"name":"Grace"}' ` +
				control + "/keys",
		}
		s.patience = 0 // nothing in it is worth waiting for
		return nil
	})
	if !e.Dashes {
		return err
	}
	problems := d.Problems()
	for _, problem := range problems {
		e.Notice("%s", problem)
	}
	if problems != nil && errors.Is(err, command.Succeeded) {
		return command.Failed(errors.New("")) // all is said
	}
	return err
}

// setFaults sets the faults of a file.
func (s *server) setFaults(d *double.Double) error {
	if s.faults == "" {
		return nil
	}
	array, err := os.ReadFile(s.faults)
	if err == nil {
		err = d.SetFaults(array, "")
	}
	if err != nil {
		return fmt.Errorf("the faults %s: %w", s.faults, err)
	}
	return nil
}

// ownerKey makes the first user of a double a key: with the chosen secret, or with one
// that is the same in every double, unless the seed has that one.
func (s *server) ownerKey() (err error) {
	const owner = double.OwnerID
	if s.apiKey == "" {
		s.pageKey, _, err = s.api.Store.IssueKey(owner)
		return err
	}
	s.pageKey = s.apiKey
	err = s.api.Apply(Record{Key: &Key{UserID: owner, Secret: s.apiKey}})
	if err != nil {
		err = fmt.Errorf("the chosen API key cannot be that of %s beside the seed: %w", owner, err)
	}
	return err
}

// server is a server of the API, from its start to its end.
type server struct {
	*eventsd
	ctx   context.Context // done when the server is to stop
	url   string
	ready command.Ready

	Config                      // of the store; the server logs to the same Logger
	api           *api          // nil until the store is open
	handler       http.Handler  // the API of a double, with its faults and journal, or nil
	control       http.Handler  // the control API of a double, or nil
	pageKey, note string        // on the page for people
	patience      time.Duration // for the requests that run when it stops
	began         time.Time
	report        operator.Report // logs what an operator changes
}

// runServer runs a server: it listens, opens the store, serves until it is to stop, and
// closes the store. Open is the step in which the servers differ: it makes the store,
// fills it, and completes the lines that are printed when the server is ready. Listening
// comes first, as no key must be made and shown for a server that cannot serve.
//
// A stop waits for each step to end, except for reading a seed: see readSeed.
func (e *eventsd) runServer(open func(*server) error) (err error) {
	if e.apiKey == "" && e.Given["api-key"] {
		return errors.New("-api-key " + secretRule(""))
	}
	logger, err := e.Logger(e.log, e.verbose)
	if err != nil {
		return err
	}
	e.warnOfVariables(logger)
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	if len(e.Args) == 0 { // else signals are for the command that runs beside it
		ctx = command.StopSignal(ctx)
	}
	if e.untilEOF {
		go func() {
			io.Copy(io.Discard, e.Stdin)
			stop()
		}()
	}
	listener, err := command.Listen(e.addr, e.Given["addr"], e.Environ, logger)
	if err != nil {
		return err
	}
	defer listener.Close()
	err = command.PrepareReadyFile(e.readyFile)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}

	s := &server{
		eventsd:  e,
		ctx:      ctx,
		url:      command.URL(listener.Addr().String(), "localhost"),
		Config:   Config{Logger: logger, NewEventStatus: e.newStatus},
		patience: command.StopTimeout,
		began:    time.Now(),
		report:   logger.Info,
	}
	err = open(s)
	if err == nil {
		var watching sync.WaitGroup
		size := func() int64 { return s.api.db.Stats().Bytes }
		watching.Go(func() { command.FreeMemory(ctx, size) })
		life := command.Life{Ready: s.announce, Stopping: s.announceStop, Patience: s.patience}
		err = command.Serve(ctx, life, s.servers(listener))
		stop()
		watching.Wait()
		s.ready.RemoveFile(e.readyFile) // before the lock of the data file is released to the next server
		err = command.Failed(errors.Join(err, s.api.Err()))
	}
	if s.api != nil {
		closed := s.api.Close()
		err = cmp.Or(err, command.Failed(closed))
	}
	if err == nil {
		logger.Info("stopped")
	}
	return err
}

// warnOfVariables warns of variables of the environment that set no flag, as their names
// may be mistyped. Kubernetes makes some for a service that is named eventsd.
func (e *eventsd) warnOfVariables(logger *slog.Logger) {
	for _, variable := range e.Environ {
		name, _, _ := strings.Cut(variable, "=")
		isOurs := strings.HasPrefix(name, "EVENTSD_")
		isForeign := strings.HasPrefix(name, "EVENTSD_PORT") || strings.HasPrefix(name, "EVENTSD_SERVICE_")
		_, isKnown := e.Variables[name]
		if isOurs && !isForeign && !isKnown {
			logger.Warn("no flag has this environment variable", "name", name)
		}
	}
}

// more is for the log of a request: its user and API key and, of a double, what a fault did.
func (s *server) more(r *http.Request, answered http.Header) (line []any) {
	secret, _ := credential(r.Header)
	user, key, _ := s.api.keyOwner(secret)
	if user != "" {
		line = append(line, "user", user, "key", key)
	}
	if s.control != nil {
		line = append(line, "fault", answered.Get(double.FaultHeader))
	}
	return line
}

// checkAPIKey refuses a secret that no key can be made with, if one was chosen. The error does
// not repeat it.
func (e *eventsd) checkAPIKey() error {
	problem := secretRule(e.apiKey)
	if problem == "" || e.apiKey == "" {
		return nil
	}
	return errors.New("-api-key " + problem)
}

// fill applies the seed to a store without data and makes the first key of one
// without keys. It reports what it did not do, and how to issue a key.
func (s *server) fill() error {
	if s.seed != "" && s.api.db.Stats().Rows["user"] > 0 { // every other row belongs to a user
		s.Logger.Warn("the seed was skipped, as the store has data: give a new -data", "seed", s.seed)
	} else if err := s.applySeed(); err != nil {
		return err
	}
	key, err := s.api.firstKey(s.apiKey, s.firstKey)
	if err != nil {
		return cmp.Or(s.checkAPIKey(), err) // the first, if that is why no key was made
	}
	if s.api.last.After(time.Now()) {
		s.Logger.Warn("the newest record is from the future, or the clock of this machine is behind; "+
			"what is created now counts as later still", "created_at", s.api.last)
	}
	state := "the store has keys"
	switch {
	case key.Secret != "":
		state = "made the first key, as the store had none"
	case s.apiKey != "" && !key.Known:
		state = "-api-key was not used: the store has keys, and this is none of them or was revoked"
	case !key.Exists:
		state = "the store has no key"
	}
	owner := "-name NAME -email EMAIL"
	if key.Owner.ID != "" {
		owner = "-user " + key.Owner.ID
	}
	if s.api.db.Path() != "" { // else no other command reaches the store
		state += "; to issue one: eventsd key issue -data '" + s.Data + "' " + owner
	}
	s.Logger.Info(state, "name", key.Owner.Name, "email", key.Owner.Email)

	forCurl := cmp.Or(key.Secret, "$KEY")
	if s.apiKey != "" && key.Known { // whoever chose it has it, unless a variable did
		key.Secret = ""
		forCurl = cmp.Or(s.Shell["api-key"], s.apiKey)
	}
	s.setReady(key.Secret, forCurl)
	return nil
}

// setReady sets what a server prints when it is ready: its key, if one was made at this
// start, and a line to paste that lists events, with a key or a variable of the shell.
func (s *server) setReady(key, forCurl string) {
	base := s.url + BasePath
	s.ready = command.Ready{
		BaseURL:  base,
		Key:      key,
		Data:     "memory",
		Operator: "off (memory)",
		Ready:    `curl -H "x-service-api-key: ` + forCurl + `" ` + base + "/events",
	}
}

// applySeed applies the file of -seed, if there is one.
func (s *server) applySeed() error {
	if s.seed == "" {
		return nil
	}
	records, err := s.readSeed()
	if err == nil {
		defer command.SaveMemory(len(records))()
		_, err = s.api.applyArray(records, true)
	}
	isWhole := bytes.HasSuffix(bytes.TrimSpace(records), []byte("]"))
	if err != nil && len(records) > 0 && !isWhole {
		err = fmt.Errorf("%w; it does not end as an array does, so a part of it may be missing", err)
	}
	if err != nil {
		return fmt.Errorf("the seed %s: %w", s.seed, err)
	}
	return s.ctx.Err()
}

// readSeed reads the seed. A stop does not wait for it, as the seed may be a pipe to
// which nobody writes: the goroutine that reads is left behind, and what it reads is
// dropped.
func (s *server) readSeed() ([]byte, error) {
	var records []byte
	var err error
	done := make(chan bool)
	go func() {
		records, err = s.Records(s.seed)
		close(done)
	}()
	select {
	case <-done:
		return records, err
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

// servers returns a server for the API and the pages beside it, for people and probes,
// and one for the operator if the store is on a file and a socket can be made.
func (s *server) servers(l net.Listener) []*command.Server {
	public := command.NewServer(l, s.withPages(), s.Logger, s.more)
	public.SetKeepAlivesEnabled(s.control == nil) // see [double.Double.Handler]
	servers := []*command.Server{public}
	path := s.api.db.Path()
	if path == "" {
		return servers
	}
	s.ready.Data = path
	s.ready.Operator = command.SocketPath(path)
	socket, err := command.Socket(s.ready.Operator)
	if err != nil {
		s.ready.Operator = "off (" + err.Error() + ")"
		s.Logger.Warn("the operator's commands cannot reach this server", "operator", s.ready.Operator)
		return servers
	}
	routes := operator.StoreRoutes(s.api, s.report, "")
	routes = append(routes, answer.Route{
		Operation: "GET /status",
		Handle:    operator.Reply(200, s.status),
	})
	everyone := func(*http.Request) error { return nil } // who may open the socket
	handler := operator.Handler("", routes, everyone, s.api.writeError)
	return append(servers, command.NewServer(socket, handler, s.Logger, s.more))
}

// status is the answer to "eventsd status".
func (s *server) status(answer.Request) (any, error) {
	db := s.api.db
	_, number := build()
	stats := db.Stats()
	_, longest := db.Writing()
	var problem any
	if err := s.api.Err(); err != nil {
		problem = advised(err).Error()
	}
	return json.RawMessage(fmt.Appendf(nil, `{"version":%q,"pid":%d,"started_at":%q,"base_url":%q,"data":%s,`+
		`"bytes":%d,"outdated_bytes":%d,"users":%d,"keys":%d,"events":%d,"guests":%d,`+
		`"commits":%d,"longest_commit_ms":%d,"error":%s}`,
		number,
		os.Getpid(),
		s.began.UTC().Format(time.RFC3339),
		s.url+BasePath,
		strict.Encode(db.Path()),
		stats.Bytes,
		stats.Outdated,
		stats.Rows["user"],
		stats.Rows["key"],
		stats.Rows["event"],
		stats.Rows["guest"],
		db.Commits(),
		longest.Milliseconds(),
		strict.Encode(problem))), nil
}

// announce says that the server is ready. A double that was given a command runs that, and
// ends with it.
func (s *server) announce() error {
	_, number := build()
	stats := s.api.db.Stats()
	rows := 0
	for _, n := range stats.Rows {
		rows += n
	}
	s.report("ready", "version", number, "rows", rows, "bytes", stats.Bytes)
	err := s.ready.WriteFile(s.readyFile)
	if err != nil {
		return err
	}
	if len(s.Args) == 0 {
		s.notifyManager("READY=1")
		return s.Printf("%s", s.ready)
	}
	return s.Child(s.ctx, s.Args, []string{
		"EVENTS_BASE_URL=" + s.ready.BaseURL,
		"EVENTS_API_KEY=" + s.ready.Key,
		"EVENTS_CONTROL_URL=" + s.ready.ControlURL,
		"EVENTS_CONTROL_TOKEN=" + s.ready.ControlToken,
	})
}

// announceStop says that the server stops.
func (s *server) announceStop() { s.notifyManager("STOPPING=1") }

// notifyManager tells the service manager a state of the server. Where that fails, the manager
// gives up on the server itself: see sd_notify(3).
func (s *server) notifyManager(state string) {
	err := command.NotifyManager(s.Environ, state)
	if err != nil {
		s.Logger.Warn("the service manager was not told", "state", state, "error", err)
	}
}

const tooLong = 10 * time.Second // for a commit or rewrite of a server that is well

// withPages serves the API and, beside it, the paths that need no key and the control API.
func (s *server) withPages() http.Handler {
	values := pages.Values{Note: s.note, Key: s.keyOnPage}
	beside := map[string]http.HandlerFunc{
		"/":             pages.Reference(values),
		"/healthz":      s.writeHealth,
		"/openapi.json": func(w http.ResponseWriter, _ *http.Request) { answer.Write(w, 200, openAPI) },
	}
	var handler http.Handler = s.api
	if s.control != nil {
		handler = s.handler
		beside[double.ControlPath+"/"] = pages.Inspector(values)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := beside[r.URL.Path]
		isControl := strings.HasPrefix(r.URL.Path+"/", double.ControlPath+"/")
		switch {
		case page != nil:
			begin(w, r)
			if r.Method != "GET" && r.Method != "HEAD" {
				s.api.writeError(w, r, answer.Method(r.URL.Path, "GET, HEAD"))
				return
			}
			page(w, r)
		case isControl && s.control != nil:
			s.control.ServeHTTP(w, r)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

// keyOnPage is the API key that a page has which a browser asks for under a host.
func (s *server) keyOnPage(host string) string {
	if s.control != nil && !double.IsLocal(host) {
		return "" // it may be the name of a page that is to read the key
	}
	return s.pageKey
}

// writeHealth answers whether the server is well.
func (s *server) writeHealth(w http.ResponseWriter, r *http.Request) {
	writing, _ := s.api.db.Writing()
	switch {
	case s.api.Err() != nil:
		s.api.writeError(w, r,
			answer.NewError(503, "the data file cannot be written; the log says why"))
	case writing > tooLong:
		s.api.writeError(w, r, answer.NewError(503,
			"the disk has been writing to the data file for more than 10 s, and changes wait for that"))
	default:
		answer.Write(w, 200, `{"status":"ok"}`)
	}
}

// Records is that of [operator.Files].
func (e *eventsd) Records(path string) (records []byte, err error) {
	if path == "-" {
		return io.ReadAll(e.Stdin)
	}
	records, err = os.ReadFile(path)
	if err == nil && rows.IsDataFile(records) {
		err = fmt.Errorf("%s is a data file, not an array of records; eventsd dump makes one of it", path)
	}
	return records, err
}

// Open is that of [operator.Files].
func (e *eventsd) Open(create bool) (operator.Store, error) {
	_, missing := os.Stat(e.Data)
	if missing != nil {
		missing = fmt.Errorf("%w; give the -data of the server, or -create to make a new file", missing)
	}
	_, unlocked := os.Stat(e.Data + ".lock") // if it is there, a server may be about to make the file
	if missing != nil && unlocked != nil && !create {
		return nil, missing
	}
	logger, _ := e.Logger("text", false) // an error is one of the format
	store, err := Open(e.Data, &Config{Logger: slog.New(warnings{logger.Handler()})})
	switch {
	case errors.Is(err, ErrInUse):
		return nil, command.Failed(fmt.Errorf("%w: %s", err, command.WhyNoSocket(e.Data)))
	case err != nil:
		return nil, advised(err)
	case missing != nil && !create:
		return nil, errors.Join(missing, store.Close())
	}
	return newAPI(store), nil
}

// warnings is the log of a command on a data file: that the file was written anew, for example,
// is for the log of a server. That a file is made is a warning: its path may be a wrong one.
type warnings struct{ slog.Handler }

func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// check reads the data file and prints what is in it. It ends with status 1 if the
// file is damaged, and not with 2: it has found what it looks for.
func (e *eventsd) check() error {
	r, count, err := rows.Check(e.Data, NewStore(nil).options())
	if errors.Is(err, ErrDamaged) {
		return command.Failed(advised(err))
	}
	if err != nil {
		return advised(err)
	}
	return e.Printf("file: %s\nbytes: %d\nlines: %d\n"+
		"commits: %d to %d, the snapshot up to %d\nusers: %d\nkeys: %d\nevents: %d\nguests: %d\nfound: %s\n",
		command.Printable(e.Data), r.Size, r.Lines,
		r.First, r.Last, r.Snap,
		count["user"], count["key"], count["event"], count["guest"],
		cmp.Or(r.Repair, "clean"))
}

// Salvage is that of [operator.Files]. It writes nothing if there is no record: an empty
// array would look like a seed.
func (e *eventsd) Salvage(w io.Writer) error {
	out := bufio.NewWriter(w)
	before := "[\n"
	found, err := rows.Salvage(e.Data, NewStore(nil).options(), func(record string) error {
		_, err := out.WriteString(before + record)
		before = ",\n"
		return command.Failed(err)
	})
	e.reportSalvaged(found)
	if err != nil {
		return advised(err)
	}
	if before == "[\n" {
		return command.Failed(fmt.Errorf("%s has no record that verifies", e.Data))
	}
	out.WriteString("\n]\n") // Flush returns all errors
	return command.Failed(out.Flush())
}

// reportSalvaged reports what the records that were salvaged lack.
func (e *eventsd) reportSalvaged(found rows.Salvaged) {
	for _, s := range found.Skipped {
		e.Notice("skipped line %d at byte %d, %d bytes: does not verify", s.Line, s.Offset, s.Bytes)
	}
	for _, line := range found.Forged {
		e.Notice("skipped a record of line %d: it is not in the form that this program writes", line)
	}
	if found.NoHeader && found.First > 0 {
		e.Notice("the header of the file is damaged or missing: what is left begins with commit %d, and "+
			"nothing shows how many commits stood before it", found.First)
	}
	const most = 10 // rows that are named
	for _, row := range found.LeftOut[:min(most, len(found.LeftOut))] {
		e.Notice("left out %s: it %s", row.ID, row.Reason)
	}
	if more := len(found.LeftOut) - most; more > 0 {
		e.Notice("left out %d more, %d in all", more, len(found.LeftOut))
	}
	if found.Missing > 0 || found.Skipped != nil || found.NoHeader {
		e.Notice("what is not in the output, %d commits at least, may have revoked keys, which are valid "+
			"in it, or deleted records, which are back in it: look through it before you use it",
			found.Missing)
	}
}

// advised adds to an error of the data file what a person can do about it with this command.
func advised(err error) error {
	damage, isDamage := errors.AsType[*rows.DamageError](err)
	format, isFormat := errors.AsType[*rows.FormatError](err)
	_, isAccess := errors.AsType[*rows.AccessError](err)
	advice := ""
	switch {
	case isDamage && damage.Kind == rows.Reformatted:
		advice = "make records of it with jq '[.[].w[]? | del(.idempotency)]' " + quoted(damage.File) +
			" > records.json, and begin a new data file with -seed records.json"
	case isDamage && damage.Kind == rows.NothingVerifies:
		advice = "begin a new data file with a dump from before as -seed"
	case isDamage:
		advice = "get out what verifies with eventsd dump -salvage -data " + quoted(damage.File) +
			", and begin a new data file with that or with a dump from before as -seed"
	case isFormat && format.Format != "":
		advice = "or begin a new data file with -seed and what eventsd dump of that program prints"
	case isFormat:
		advice = "give another path, or read a JSON array of records with -seed into a new data file"
	case isAccess:
		advice = "eventsd check and eventsd dump -salvage only read it"
	case errors.Is(err, rows.ErrReplaced):
		advice = "keep what is in memory, with eventsd dump, before you stop"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// quoted is a path as one word of a shell.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
