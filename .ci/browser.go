// Command browser opens the two pages of eventsd in a headless Chromium and uses them as a
// person does: it types, clicks and presses Tab, and looks at what the pages show.
//
//	go run .ci/browser.go [-axe FILE] [-pictures FOLDER] EVENTSD
//	go run .ci/browser.go -docs docs EVENTSD
//
// EVENTSD is the program. With -axe, the file axe.js of axe-core judges each page. With
// -pictures it writes a picture of each page at each width, in the light and in the dark. With
// -docs it only writes the pictures of README.md. It drives the browser by the DevTools protocol over a pipe
// (--remote-debugging-pipe): JSON messages that end with a zero byte, read by the browser
// from its file descriptor 3 and written to 4. Without a browser it says that it is skipped.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience is how long the driver waits for the browser, the program or a page.
const patience = 20 * time.Second

var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

func main() {
	c := &checks{}
	flag.StringVar(&c.axe, "axe", "", "`FILE` with axe-core, which judges each page")
	flag.StringVar(&c.docs, "docs", "", "`FOLDER` for the pictures of README.md")
	flag.StringVar(&c.pictures, "pictures", "", "`FOLDER` for a picture of each page")
	flag.Parse()
	c.eventsd = flag.Arg(0)
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (c *checks) run() error {
	path := ""
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		fmt.Println("skipped: there is no browser")
		return nil
	}
	var err error
	c.browser, err = launch(path)
	if err != nil {
		return err
	}
	defer c.browser.close()
	if c.docs != "" {
		c.width = 1280
		c.do("the pictures of README.md", c.forReadme)
		return c.failed
	}
	for _, c.width = range []int{1280, 390} {
		c.do("the reference of a demo", c.demo)
		c.do("the reference of a double", c.double)
		c.do("the reference of a server with a key of its own", c.ownKey)
		c.do("the inspector", c.inspector)
		c.do("pages without a script", c.withoutScript)
	}
	c.width = 1280
	c.do("the inspector of a full journal", c.fullJournal)
	c.do("a domain that points to a double", c.rebound)
	c.do("the reference of another description", c.changed)
	return c.failed
}

// failure is what a check found. Helpers panic with it, which ends the check.
type failure string

func (f failure) Error() string { return string(f) }

func fail(format string, args ...any) { panic(failure(fmt.Sprintf(format, args...))) }

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// equal fails unless what is there is what should be there.
func equal[T comparable](what string, got, want T) {
	if got != want {
		fail("%s: got %v, want %v", what, got, want)
	}
}

// browser is a running Chromium.
type browser struct {
	cmd     *exec.Cmd
	profile string
	in      *os.File

	mu      sync.Mutex
	last    int                      // id of the last command
	answers map[int]chan message     // of the commands that wait
	tabs    map[string]func(message) // what takes the events of a session
	gone    chan struct{}            // closed when the browser sends no more
}

// message is a command, an answer or an event of the protocol.
type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// launch starts a browser. Every name that ends with .example is this machine to it.
func launch(path string) (*browser, error) {
	profile, err := os.MkdirTemp("", "browser")
	if err != nil {
		return nil, err
	}
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + profile, "--no-first-run",
		"--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking",
		"--host-resolver-rules=MAP *.example 127.0.0.1", "--no-proxy-server",
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // the sandbox of Chromium refuses root
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, append(args, "about:blank")...)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{cmd: cmd, profile: profile, in: in, answers: map[int]chan message{},
		tabs: map[string]func(message){}, gone: make(chan struct{})}
	go b.read(bufio.NewReader(out))
	return b, nil
}

// read gives each message to the command or the tab that it is for.
func (b *browser) read(out *bufio.Reader) {
	defer close(b.gone)
	for {
		text, err := out.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		answer, event := b.answers[m.ID], b.tabs[m.SessionID]
		delete(b.answers, m.ID)
		b.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m
		case event != nil:
			event(m)
		}
	}
}

// call sends a command and decodes its result.
func (b *browser) call(session, method string, params map[string]any, result any) {
	answer := make(chan message, 1)
	b.mu.Lock()
	b.last++
	m := message{ID: b.last, SessionID: session, Method: method}
	b.answers[m.ID] = answer
	b.mu.Unlock()
	var err error
	m.Params, err = json.Marshal(params)
	must(err)
	text, err := json.Marshal(m)
	must(err)
	_, err = b.in.Write(append(text, 0))
	must(err)
	select {
	case m = <-answer:
	case <-b.gone:
		fail("%s: the browser is gone", method)
	case <-time.After(patience):
		fail("%s: no answer of the browser", method)
	}
	if m.Error != nil {
		fail("%s: %s", method, m.Error.Message)
	}
	if result != nil {
		must(json.Unmarshal(m.Result, result))
	}
}

func (b *browser) close() {
	b.in.Close() // which ends it
	select {
	case <-b.gone:
	case <-time.After(patience):
	}
	b.cmd.Process.Kill()
	b.cmd.Wait()
	os.RemoveAll(b.profile)
}

// tab is an open page.
type tab struct {
	browser *browser
	target  string
	session string

	mu       sync.Mutex
	problems []string          // errors in the console
	requests []string          // method and URL of what the page has fetched
	urls     map[string]string // of what it fetches, by id
	bytes    map[string]int    // that it has received, by URL
	openAPI  []byte            // what the page gets for openapi.json, if it is not the server's
}

// open opens a URL in a tab of a width. It returns once the page is loaded. It calls prepare,
// if there is one, before that.
func (b *browser) open(url string, width int, prepare ...func(*tab)) *tab {
	var target struct{ TargetID string }
	b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	t := &tab{browser: b, target: target.TargetID, session: attached.SessionID,
		urls: map[string]string{}, bytes: map[string]int{}}
	b.mu.Lock()
	b.tabs[t.session] = t.event
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		t.call(domain+".enable", nil, nil)
	}
	t.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	t.scheme("light")
	for _, f := range prepare {
		f(t)
	}
	t.call("Page.navigate", map[string]any{"url": url}, nil)
	t.wait(`location.href !== 'about:blank' && document.readyState === 'complete'`)
	return t
}

func (t *tab) close() {
	t.browser.call("", "Target.closeTarget", map[string]any{"targetId": t.target}, nil)
}

func (t *tab) call(method string, params map[string]any, result any) {
	t.browser.call(t.session, method, params, result)
}

// event records what goes wrong on the page, and what it fetches.
func (t *tab) event(m message) {
	var p struct {
		Type             string
		Args             []struct{ Value any }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry     struct{ Level, Source, Text, URL string }
		Request   struct{ Method, URL string }
		RequestID string
		Length    float64 `json:"encodedDataLength"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m.Method {
	case "Runtime.exceptionThrown":
		t.problems = append(t.problems, p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
			t.problems = append(t.problems, fmt.Sprint(p.Args))
		}
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			t.problems = append(t.problems, p.Entry.Text+" "+p.Entry.URL)
		}
	case "Fetch.requestPaused":
		body := base64.StdEncoding.EncodeToString(t.openAPI)
		go t.call("Fetch.fulfillRequest", map[string]any{
			"requestId": p.RequestID, "responseCode": 200, "body": body}, nil)
	case "Network.requestWillBeSent":
		if !strings.HasPrefix(p.Request.URL, "data:") {
			t.requests = append(t.requests, p.Request.Method+" "+p.Request.URL)
			t.urls[p.RequestID] = p.Request.URL
		}
	case "Network.loadingFinished":
		t.bytes[t.urls[p.RequestID]] += int(p.Length)
	}
}

// quiet fails if the console has an error but for those that contain one of the words.
func (t *tab) quiet(expected ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, problem := range t.problems {
		if !slices.ContainsFunc(expected, func(word string) bool { return strings.Contains(problem, word) }) {
			fail("the console has: %s", problem)
		}
	}
	t.problems = nil
}

// fetched returns what the page has fetched, of a server alone.
func (t *tab) fetched(root string) (all []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, request := range t.requests {
		method, url, _ := strings.Cut(request, " ")
		path, isOwn := strings.CutPrefix(url, root)
		if !isOwn {
			fail("the page fetched %s, which is of another host", url)
		}
		all = append(all, method+" "+path)
	}
	return all
}

// received is how many bytes the page has received of the URLs that contain a text.
func (t *tab) received(of string) (bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for url, n := range t.bytes {
		if strings.Contains(url, of) {
			bytes += n
		}
	}
	return bytes
}

// js is a value as JavaScript has it.
func js(value any) string {
	text, err := json.Marshal(value)
	must(err)
	return string(text)
}

// eval evaluates an expression in the page, waits for it if it is a promise, and decodes
// its value.
func (t *tab) eval(expression string, value any) {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	t.call("Runtime.evaluate", map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		fail("%s: %s", expression, r.ExceptionDetails.Exception.Description)
	}
	if value != nil {
		if err := json.Unmarshal(r.Result.Value, value); err != nil {
			fail("%s is %s: %v", expression, r.Result.Value, err)
		}
	}
}

func (t *tab) text(expression string) (value string) {
	t.eval("String("+expression+")", &value)
	return value
}

func (t *tab) number(expression string) (value int) {
	t.eval(expression, &value)
	return value
}

// wait waits until a condition holds on the page.
func (t *tab) wait(condition string) {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		holds := false
		if t.eval("Boolean("+condition+")", &holds); holds {
			return
		}
		if time.Now().After(deadline) {
			fail("this does not become true: %s\nThe page has: %s", condition, t.text("document.body.innerText"))
		}
	}
}

// click clicks in the middle of an element, with the mouse, as soon as the element is there to be seen.
func (t *tab) click(expression string) {
	t.wait(fmt.Sprintf("%s?.checkVisibility()", expression))
	var at [2]float64
	t.eval(fmt.Sprintf(`(() => {
		const target = %s;
		target.scrollIntoView({block: 'center', behavior: 'instant'});
		const {left, top, width, height} = target.getBoundingClientRect();
		const [x, y] = [left + width / 2, top + height / 2];
		const hit = document.elementFromPoint(x, y);
		if (!target.contains(hit)) throw new Error('covered by ' + hit?.outerHTML.slice(0, 200));
		return [x, y];
	})()`, expression), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		t.call("Input.dispatchMouseEvent", map[string]any{
			"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

// write replaces what is in a field, by typing.
func (t *tab) write(expression, text string) {
	t.click(expression)
	t.eval(fmt.Sprintf("(%s).select()", expression), nil)
	if text == "" {
		t.press("Backspace", 8, "")
		return
	}
	t.call("Input.insertText", map[string]any{"text": text}, nil)
	equal("what was typed", t.text(expression+".value"), text)
}

// press presses a key. Its text is what it types, if it does.
func (t *tab) press(key string, number int, text string) {
	for _, kind := range []string{"keyDown", "keyUp"} {
		t.call("Input.dispatchKeyEvent", map[string]any{
			"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number, "text": text}, nil)
	}
}

func (t *tab) scheme(name string) {
	features := []map[string]string{{"name": "prefers-color-scheme", "value": name}}
	t.call("Emulation.setEmulatedMedia", map[string]any{"features": features}, nil)
}

// judge fails if the page breaks a rule of WCAG 2.1 A or AA, or a best practice, as axe-core
// judges them, in the light or in the dark.
func (t *tab) judge(axe string) {
	rules, err := os.ReadFile(axe)
	must(err)
	t.eval(string(rules)+"; true", nil)
	for _, scheme := range []string{"light", "dark"} {
		t.scheme(scheme)
		var wrong []string
		t.eval(`axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})
			.then(({violations, passes}) => passes.length < 20 ? ['it has judged little'] : violations.flatMap(
				({id, help, nodes}) => nodes.map(({html}) => id + ': ' + help + ': ' + html)))`, &wrong)
		if len(wrong) > 0 {
			fail("axe-core finds, in the %s:\n%s", scheme, strings.Join(wrong, "\n"))
		}
	}
}

// looks fails if something on the page is wider than the screen or its place, or if a text
// is hard to read in the light or in the dark (WCAG 2.2, contrast of level AA).
func (t *tab) looks() {
	backgrounds := map[string]bool{}
	for _, scheme := range []string{"light", "dark"} {
		t.scheme(scheme)
		var wrong []string
		t.eval(`(() => {
			const wrong = [];
			const channels = color => color.match(/[\d.]+/g).map(Number);
			const luminance = color => channels(color).slice(0, 3).map(c => c / 255)
				.map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
				.reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
			const background = e => {
				const color = getComputedStyle(e).backgroundColor;
				return channels(color)[3] === 0 ? background(e.parentElement) : color;
			};
			if (document.documentElement.scrollWidth > innerWidth) wrong.push('the page scrolls sideways');
			for (const e of document.querySelectorAll('body *')) {
				if (!e.checkVisibility()) continue;
				const {left, right, width} = e.getBoundingClientRect();
				const name = e.outerHTML.slice(0, 120);
				if (width && (left < -.5 || right > innerWidth + .5)) wrong.push('off the screen: ' + name);
				const style = getComputedStyle(e);
				if (style.display !== 'inline' && style.overflowX === 'visible' && e.scrollWidth > e.clientWidth + 1) {
					wrong.push('wider than its place: ' + name);
				}
				const hasText = [...e.childNodes].some(node => node.nodeType === 3 && node.data.trim());
				if (!hasText && !e.matches('input, textarea')) continue;
				const [high, low] = [style.color, background(e)].map(luminance).sort((a, b) => b - a);
				const ratio = (high + .05) / (low + .05);
				if (ratio < 4.5) wrong.push('contrast of ' + ratio.toFixed(1) + ' in the `+scheme+`: ' + name);
				if (parseFloat(style.fontSize) < 13) wrong.push('small type: ' + name);
			}
			return wrong;
		})()`, &wrong)
		if len(wrong) > 0 {
			fail("the page looks wrong:\n%s", strings.Join(wrong, "\n"))
		}
		backgrounds[t.text("getComputedStyle(document.documentElement).backgroundColor")] = true
	}
	equal("colours of the page in the light and the dark", len(backgrounds), 2)
}

// tabs presses Tab through the whole page. Every control must come, in the order of the
// page, with something to see around it.
func (t *tab) tabs() {
	count := 0
	t.eval(`(() => {
		document.body.tabIndex = -1; // to begin at the top
		document.body.focus();
		document.body.removeAttribute('tabindex');
		const all = document.querySelectorAll('a[href], button, input, textarea, summary, [tabindex="0"]');
		window.controls = [...all].filter(e => e.checkVisibility({visibilityProperty: true}));
		return controls.length;
	})()`, &count)
	if count < 10 {
		fail("the page has %d controls only", count)
	}
	for i := range count {
		t.press("Tab", 9, "")
		var at int
		t.eval("controls.indexOf(document.activeElement)", &at)
		if at != i {
			fail("Tab reaches %s, want %s", t.text("document.activeElement.outerHTML.slice(0, 200)"),
				t.text(fmt.Sprintf("controls[%d].outerHTML.slice(0, 200)", i)))
		}
		style := "getComputedStyle(document.activeElement)"
		if t.text(style+".outlineStyle") == "none" || t.text("parseFloat("+style+".outlineWidth) >= 2") == "false" {
			fail("nothing shows the focus of %s", t.text("document.activeElement.outerHTML.slice(0, 200)"))
		}
	}
}

// picture writes a picture of the page in the light and one in the dark.
func (t *tab) picture(file string) {
	for _, scheme := range []string{"light", "dark"} {
		t.scheme(scheme)
		t.shoot(file+"-"+scheme+".png", true)
	}
	t.scheme("light")
}

// shoot writes a picture of the page, or only of what a screen shows of it at first.
func (t *tab) shoot(file string, isWhole bool) {
	t.eval("scrollTo(0, 0)", nil)
	var shot struct{ Data string }
	t.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": isWhole}, &shot)
	image, err := base64.StdEncoding.DecodeString(shot.Data)
	must(err)
	must(os.WriteFile(file, image, 0o644))
}

// server is a running eventsd, and the lines that it printed.
type server struct {
	cmd   *exec.Cmd
	lines map[string]string
	root  string // URL without the path
}

func (c *checks) start(args ...string) *server {
	s := &server{cmd: exec.Command(c.eventsd, args...), lines: map[string]string{}}
	stdout, err := s.cmd.StdoutPipe()
	must(err)
	must(s.cmd.Start())
	late := time.AfterFunc(patience, func() { s.cmd.Process.Kill() })
	defer late.Stop()
	for sc := bufio.NewScanner(stdout); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), ": ")
		s.lines[name] = value
		if name == "ready" {
			s.root = strings.TrimSuffix(s.lines["base_url"], "/api/public/v1")
			return s
		}
	}
	s.stop()
	fail("eventsd %q was not ready", args)
	return nil
}

func (s *server) stop() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// shell runs a curl line as a person would who pastes it, and returns the body and the
// status of the answer.
func shell(line string) (body string, status int) {
	script := `curl() { command curl -s -w '\n%{http_code}' "$@"; }` + "\n" + line
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil {
		fail("%s\nfails: %v %s", line, err, out)
	}
	at := strings.LastIndexByte(string(out), '\n')
	status, err = strconv.Atoi(string(out[at+1:]))
	must(err)
	return string(out[:at]), status
}

// checks are what the pages must do.
type checks struct {
	*browser
	eventsd       string
	axe, pictures string
	docs          string
	width         int
	failed        error // some of them
}

func (c *checks) do(name string, check func()) {
	name = fmt.Sprintf("%s, %d pixels wide", name, c.width)
	start := time.Now()
	defer func() {
		p := recover()
		if f, isFailure := p.(failure); isFailure {
			fmt.Printf("%s: %s\n", name, f)
			c.failed = errors.New("the pages do not do what they must")
			return
		}
		if p != nil {
			panic(p)
		}
		fmt.Printf("%s: ok after %d ms\n", name, time.Since(start).Milliseconds())
	}()
	check()
}

// finish ends the use of a page: its looks, its keys, its picture, its console.
func (c *checks) finish(t *tab, name string, expected ...string) {
	t.looks()
	if c.axe != "" {
		t.judge(c.axe)
	}
	t.scheme("light")
	if c.pictures != "" {
		t.picture(filepath.Join(c.pictures, fmt.Sprintf("%s-%d", name, c.width)))
	}
	t.tabs()
	t.quiet(expected...)
	t.close()
}

// attack is a title that would run a script if it were taken for HTML, or run commands if a
// curl line did not quote it.
const attack = `<img src=x onerror="window.attacked = true"> it's $(touch attacked) "quoted" \n`

// harmless fails if an attack did something.
func (t *tab) harmless() {
	equal("images on the page", t.text("document.images.length"), "0")
	equal("whether the attack ran", t.text("window.attacked"), "undefined")
	if _, err := os.Stat("attacked"); !errors.Is(err, os.ErrNotExist) {
		fail("a curl line ran a command")
	}
}

// operations are those of openapi.json and the status of each, in its order.
var operations = []struct {
	id     string
	status int
}{{"getMe", 200}, {"listEvents", 200}, {"createEvent", 201}, {"getEvent", 200}, {"listGuests", 200}, {"getOpenAPI", 200}}

// part is an element of the section of an operation.
func part(operation, selector string) string {
	return fmt.Sprintf("document.querySelector(%s)", js("#"+operation+" "+selector))
}

// field is a field by its accessible name, in the section of an operation or anywhere.
func field(in, name string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%s)].find(label => label.firstChild.data === %s).control",
		js(in+" label"), js(name))
}

// button is a button by its text.
func button(in, text string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%s)].find(button => button.textContent === %s)",
		js(in+" button"), js(text))
}

// send clicks Send and returns the status and the body of the answer.
func (t *tab) send(operation string) (status, body string) { return t.answerOf(operation, "Send") }

func (t *tab) answerOf(operation, name string) (status, body string) {
	t.click(button("#"+operation, name))
	status = part(operation, ".status") + ".textContent"
	t.wait(status)
	return t.text(status), t.text(part(operation, ".answer") + ".textContent")
}

// reference opens the reference, which must fetch the description and nothing else.
func (c *checks) reference(s *server) *tab {
	t := c.open(s.root+"/", c.width)
	t.wait("document.querySelectorAll('section').length === 6")
	equal("fetched by opening the page", strings.Join(t.fetched(s.root), ", "), "GET /, GET /openapi.json")
	var top int
	t.eval("Math.round(document.querySelector('section').getBoundingClientRect().top)", &top)
	if c.width >= 1280 && top > 700 {
		fail("the first operation stands %d pixels down", top)
	}
	t.quiet()
	return t
}

// chapters follows the link to each chapter of the description: they stand behind the operations.
func (c *checks) chapters(t *tab) {
	var names []string
	t.eval("[...document.querySelectorAll('section:last-of-type ~ .group h2')].map(({textContent}) => textContent)", &names)
	for _, want := range []string{"Authentication", "Lists", "Errors", "Trying again", "Browsers", "Versions"} {
		if !slices.Contains(names, want) {
			fail("the page lacks the chapter %s: %q", want, names)
		}
	}
	for _, name := range names {
		t.click(fmt.Sprintf("[...document.querySelectorAll('nav a')].find(a => a.textContent === %s)", js(name)))
		t.wait(fmt.Sprintf(`(() => {
			const heading = document.querySelector(location.hash + ' > h2');
			const {top} = heading.getBoundingClientRect();
			return heading.textContent === %s && top >= 0 && top < innerHeight;
		})()`, js(name)))
	}
}

// copied clicks a button that copies a curl line, and returns what a paste then brings.
func (t *tab) copied(in, field string) string {
	t.click(button(in, "Copy"))
	t.write(field, " ")
	t.eval(fmt.Sprintf("(%s).select()", field), nil)
	t.call("Input.dispatchKeyEvent", map[string]any{"type": "rawKeyDown", "commands": []string{"paste"}}, nil)
	return t.text(field + ".value")
}

// sendAll sends every operation with nothing typed, and each curl line.
func (c *checks) sendAll(t *tab) {
	for _, operation := range operations {
		status, body := t.send(operation.id)
		equal("status of "+operation.id, status, strconv.Itoa(operation.status))
		if !json.Valid([]byte(body)) || !strings.Contains(body, "\n  ") {
			fail("the answer of %s is no indented JSON: %s", operation.id, body)
		}
		if time := t.text(part(operation.id, ".time") + ".textContent"); !strings.HasSuffix(time, " ms") {
			fail("the time of %s is %q", operation.id, time)
		}
	}
	for _, operation := range operations {
		line := t.text(part(operation.id, ".curl") + ".textContent")
		if _, status := shell(line); status != operation.status {
			fail("%s\nanswers %d, want %d", line, status, operation.status)
		}
	}
	t.quiet()
}

func (c *checks) demo() {
	s := c.start("demo", "-addr", "127.0.0.1:0")
	defer s.stop()
	t := c.reference(s)
	_, guests := t.send("listGuests") // of the event in the example
	if !strings.Contains(guests, "Michael Faraday") {
		fail("the guests of the demo are %s", guests)
	}
	c.sendAll(t)
	t.write(field("#listEvents", "limit"), "1")
	_, first := t.send("listEvents")
	_, second := t.answerOf("listEvents", "Next page")
	if first == second || !strings.Contains(second, `"has_more"`) {
		fail("the next page is %s", second)
	}
	if line := t.text(part("listEvents", ".curl") + ".textContent"); !strings.Contains(line, "limit=1&cursor=") {
		fail("the curl line does not follow what is typed: %s", line)
	}
	t.write(field("#listEvents", "cursor"), "")
	t.write(field("#listEvents", "limit"), "0")
	status, body := t.send("listEvents")
	equal("status of limit=0", status, "400")
	if !strings.Contains(body, `"limit must be`) {
		fail("a 400 is shown as %s", body)
	}
	t.quiet("400")

	c.chapters(t)
	line := part("listEvents", ".curl") + ".textContent"
	equal("what the button copies", t.copied("#listEvents", field("#createEvent", "body")), t.text(line))
	t.write(field("#createEvent", "body"), event(attack))
	status, body = t.send("createEvent")
	equal("status of an attack", status, "201")
	var sent, pasted struct{ Title string }
	must(json.Unmarshal([]byte(body), &sent))
	equal("title that was sent", sent.Title, attack)
	body, _ = shell(t.text(part("createEvent", ".curl") + ".textContent"))
	must(json.Unmarshal([]byte(body), &pasted))
	equal("title that the curl line sent", pasted.Title, attack)
	t.harmless()
	t.eval("document.querySelectorAll('#createEvent details').forEach(details => { details.open = true; })", nil)
	c.finish(t, "reference")
}

func (c *checks) double() {
	s := c.start("double")
	defer s.stop()
	t := c.reference(s)
	equal("links to the inspector", t.text(`document.querySelectorAll('a[href="/_control/"]').length`), "1")
	status, _ := t.send("listGuests") // which needs an id that nobody has given
	equal("status of the guests", status, "200")
	made := t.text(field("#getEvent", "id") + ".value")
	if note := t.text(part("listGuests", ".note") + ".textContent"); !strings.Contains(note, "/events/create") {
		fail("the page does not say that it has made an event: %q", note)
	}
	_, event := t.send("getEvent")
	if made == "" || !strings.Contains(event, `"`+made+`"`) {
		fail("the page made the event %q and fetched %s", made, event)
	}
	c.sendAll(t)
	t.close()
}

func (c *checks) ownKey() {
	const key = "svc_live_typed_by_hand_0123456789"
	s := c.start("-memory", "-addr", "127.0.0.1:0", "-api-key", key)
	defer s.stop()
	t := c.reference(s)
	equal("key on the page", t.text("document.querySelector('#key').value"), "")
	status, _ := t.send("getMe")
	equal("status without a key", status, "401")
	t.quiet("401")
	t.write("document.querySelector('#key')", key)
	c.sendAll(t)
	kept := t.text("JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, history.state])")
	if strings.Contains(kept, key) {
		fail("the key is kept: %s", kept)
	}
	t.close()
}

// inspector uses the inspector of a double while requests come to it.
func (c *checks) inspector() {
	s := c.start("double", "-control-token", "a.b-c_d~e")
	defer s.stop()
	t := c.open(s.root+"/_control/", c.width)
	equal("what is shown without a token", t.text("document.querySelector('main').hidden"), "true")
	t.write("document.querySelector('#token')", s.lines["control_token"])
	t.press("Enter", 13, "\r")
	t.wait("!document.querySelector('main').hidden")
	t.close()

	t = c.open(s.lines["inspector"], c.width)
	t.wait("!document.querySelector('main').hidden")
	equal("the address bar", t.text("location.href"), s.root+"/_control/")
	kept := t.text("document.documentElement.outerHTML + JSON.stringify([localStorage, document.cookie, history.state])")
	if strings.Contains(kept, s.lines["control_token"]) {
		fail("the token is kept: %s", kept)
	}
	c.watch(t, s)
	c.setFault(t, s)
	t.harmless()

	now := t.text("document.querySelector('#now').textContent")
	t.write(field("", "advance by"), "1h")
	t.click(button("", "Advance"))
	t.wait(fmt.Sprintf("document.querySelector('#now').textContent === %s", js(strings.Replace(now, "T00:", "T01:", 1))))
	c.finish(t, "inspector")

	t = c.open(s.lines["inspector"], c.width)
	t.wait("document.querySelector('#faults').children.length === 1")
	c.follow(t, s)
	t.wait("document.querySelector('#faults').children.length === 1")
	t.click(button("#faults", "Remove"))
	t.wait("document.querySelector('#faults').children.length === 0")
	t.click(button("", "Reset"))
	t.wait(fmt.Sprintf("document.querySelector('#now').textContent === %s", js(now)))
	t.quiet()
	t.close()
}

// watch sends requests of an attacker and looks at them in the inspector.
func (c *checks) watch(t *tab, s *server) {
	s.ask(200, "/users/me")
	key := s.lines["api_key"]
	s.ask(201, "/events/create", "-H", "X-Attack: "+attack, "-H", "X-Note: "+key, "-d", event(attack))
	s.ask(404, "/events/<img/src=x>[1-2]/..", "-X", "GET")
	rows := "document.querySelectorAll('#requests > :not([hidden])')"
	t.wait(rows + ".length === 3")
	if first := t.text(rows + "[0].textContent"); !strings.Contains(first, "404") {
		fail("the newest request is not the first: %s", first)
	}
	t.wait(rows + "[0].textContent.includes('there is no such route')")
	t.click(rows + "[1].querySelector('summary')")
	t.wait(rows + "[1].querySelector('.curl')")
	shown := t.text(rows + "[1].textContent")
	for _, want := range []string{"X-Attack: " + attack, event(attack), "201", "usr_owner"} {
		if !strings.Contains(shown, want) {
			fail("the request lacks %s: %s", want, shown)
		}
	}
	line := t.text(rows + "[1].querySelector('.curl').textContent")
	if body, status := shell(line); status != 201 {
		fail("the curl line of a request answers %d %s", status, body)
	}
	equal("API keys in the curl line, which is in two headers", strings.Count(line, key), 1)
	t.wait(rows + ".length === 4")
	t.write(field("", "Filter"), "users/me 200")
	t.wait(rows + ".length === 1")
	t.write(field("", "Filter"), "")
	t.wait(rows + ".length === 4 && [...document.querySelectorAll('#requests details')][2].open")
}

// setFault sets a fault by the form and sends a request that meets it.
func (c *checks) setFault(t *tab, s *server) {
	t.write(field("", "operation"), "POST /events/create")
	t.write(field("", "status"), "many")
	t.click(button("", "Set"))
	t.wait("document.querySelector('#faults + form .problem').textContent")
	t.quiet("400")
	t.write(field("", "status"), "503")
	t.click("document.querySelector('#faults + form summary')")
	line := t.text("document.querySelector('#requests .curl').textContent")
	equal("what the button copies", t.copied("#requests", field("", "body")), line)
	t.write(field("", "body"), "<html>")
	t.write(field("", "delay"), "5ms")
	t.write(field("", "header"), `{"X-Zebra": ["7"]}`)
	t.click(button("", "Set"))
	t.wait("/status 503.*body <html>|body <html>.*status 503/.test(document.querySelector('#faults').textContent)")
	s.ask(503, "/events/create", "-d", event("Met"))
	t.wait("document.querySelector('#requests').textContent.includes('status 503, header, delay 5ms')")
	t.wait("document.querySelector('#faults').textContent.includes('hits: 1')")
}

// follow looks at a request while a fault holds it and when it is answered, and at an empty journal.
func (c *checks) follow(t *tab, s *server) {
	newest := "document.querySelector('#requests').firstElementChild"
	s.control("POST", "/faults", `{"operation": "GET /users/me", "delay": "1h"}`)
	var asking sync.WaitGroup
	asking.Go(func() {
		shell(fmt.Sprintf("curl -H 'x-service-api-key: %s' '%s/users/me'",
			s.lines["api_key"], s.lines["base_url"]))
	})
	t.wait(newest + ".querySelector('.fault').textContent === 'delay 1h0m0s'")
	t.wait("document.querySelector('#faults').children.length === 2")
	t.click(button("#faults li:last-child", "Remove"))
	t.wait(newest + ".querySelector('.status').textContent === '200'")
	asking.Wait()
	s.control("DELETE", "/requests", "")
	t.wait("document.querySelector('#requests').children.length === 0")
}

const maxJournal = 1000 // requests, which is as many as the journal keeps

// fullJournal opens the inspector beside a full journal, and sends requests while it is open, in
// front and behind another tab.
func (c *checks) fullJournal() {
	s := c.start("double")
	defer s.stop()
	s.fill()
	s.ask(400, "/users/me?needle=1", "-X", "GET")
	count := maxJournal + 1
	var t *tab
	inTime("opening the inspector", 3*time.Second, func() {
		t = c.open(s.lines["inspector"], c.width)
		t.wait(fmt.Sprintf("document.querySelector('#count').textContent === '%d of %[1]d'", maxJournal))
	})
	rows := "document.querySelector('#requests').children"

	before := t.received("/_control/requests")
	ask := func() {
		s.ask(200, "/users/me")
		count++
		t.wait(fmt.Sprintf("%s[0].querySelector('.seq').textContent === '%d'", rows, count))
	}
	for range 3 {
		inTime("showing a new request", 500*time.Millisecond, ask)
	}
	other := c.open(s.root+"/", c.width)
	other.call("Page.bringToFront", nil, nil)
	t.wait("document.hidden")
	ask()
	t.call("Page.bringToFront", nil, nil)
	inTime("showing a new request", 500*time.Millisecond, ask)
	if bytes := t.received("/_control/requests") - before; bytes > 100_000 {
		fail("a few requests made the inspector fetch %d bytes of the journal", bytes)
	}

	t.write(field("", "Filter"), "needle=1 400")
	t.wait(rows + ".length === 1")
	t.quiet()
	t.close()
	other.close()
}

// inTime fails if something takes too long. It is tried three times, as the machine may be busy.
func inTime(what string, limit time.Duration, do func()) {
	var took [3]time.Duration
	for i := range took {
		start := time.Now()
		do()
		took[i] = time.Since(start)
		if took[i] <= limit {
			return
		}
	}
	fail("%s took %v, want at most %v", what, took, limit)
}

// fill sends as many requests as the journal keeps.
func (s *server) fill() {
	for range maxJournal {
		r, err := http.NewRequest("GET", s.lines["base_url"]+"/events", nil)
		must(err)
		r.Header.Set("x-service-api-key", s.lines["api_key"])
		answer, err := http.DefaultClient.Do(r)
		must(err)
		answer.Body.Close()
	}
}

// event is the body of a create.
func event(title string) string {
	return js(map[string]string{"title": title, "start_at": "2030-02-01T10:00:00Z", "end_at": "2030-02-01T11:00:00Z"})
}

// ask sends a request to the API of a double with curl, and fails unless it is answered
// with a status.
func (s *server) ask(want int, path string, args ...string) {
	line := "curl --path-as-is -g"
	args = append(args, "-H", "x-service-api-key: "+s.lines["api_key"], "-H", "Content-Type: application/json")
	for _, arg := range append(args, s.lines["base_url"]+path) {
		line += " '" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	if body, status := shell(line); status != want {
		fail("%s = %d %s, want %d", line, status, body, want)
	}
}

// control sends a request to the control API of a double, and returns the body of the answer.
func (s *server) control(method, path, body string) string {
	answer, status := shell(fmt.Sprintf("curl -X %s -H 'Authorization: Bearer %s' -d '%s' '%s%s'",
		method, s.lines["control_token"], body, s.lines["control_url"], path))
	if status >= 300 {
		fail("%s %s = %d %s", method, path, status, answer)
	}
	return answer
}

// rebound opens the double by a name that its owner has pointed to this machine.
func (c *checks) rebound() {
	s := c.start("double")
	defer s.stop()
	_, port, _ := strings.Cut(strings.TrimPrefix(s.root, "http://"), ":")
	t := c.open("http://rebound.example:"+port+"/", c.width)
	var status int
	t.eval(fmt.Sprintf(`fetch('/_control/clock', {method: 'PUT', body: '{"advance": "1h"}',
		headers: {Authorization: 'Bearer %s'}}).then(response => response.status)`, s.lines["control_token"]), &status)
	equal("status of a page of the domain", status, 403)
	t.close()
}

// forReadme writes the pictures of README.md: the two pages after a little use.
func (c *checks) forReadme() {
	s := c.start("demo")
	t := c.reference(s)
	t.send("getMe")
	t.shoot(filepath.Join(c.docs, "reference.png"), false)
	t.close()
	s.stop()

	s = c.start("double", "-addr", "127.0.0.1:8081")
	defer s.stop()
	s.control("PUT", "/faults", `[{"operation": "POST /events/create", "status": 503, "after": 1, "times": 1}]`)
	s.ask(201, "/events/create", "-d", event("Launch party"))
	s.ask(200, "/users/me")
	s.ask(400, "/events?limit=1000", "-X", "GET")
	s.ask(503, "/events/create", "-d", event("After the party"))
	s.ask(201, "/events/create", "-d", event("After the party"))
	t = c.open(s.lines["inspector"], c.width)
	t.wait("document.querySelector('#requests').children.length === 5 && !document.querySelector('main').hidden")
	t.click("document.querySelectorAll('#requests summary')[4]")
	t.wait("document.querySelector('#requests .curl')")
	t.shoot(filepath.Join(c.docs, "inspector.png"), false)
	t.close()
}

// withoutScript opens the pages in a browser that runs no script.
func (c *checks) withoutScript() {
	s := c.start("double")
	defer s.stop()
	for _, path := range []string{"/", "/_control/"} {
		t := c.open(s.root+path, c.width, func(t *tab) {
			t.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
		})
		text := t.text("document.body.innerText")
		if !strings.Contains(text, s.lines["base_url"]) || strings.Count(text, "curl ") != 3 {
			fail("without a script, %s shows %s", path, text)
		}
		t.looks()
		t.quiet()
		t.close()
	}
}

// changes are merged into the description: an operation with little but its answers, and
// one of each thing that a description may have.
const changes = `{
	"externalDocs": {"url": "https://docs.example/zebra"},
	"info": {"contact": {"name": "Zebra keeper"}},
	"paths": {"/zebras/{stripe}": {
		"parameters": [{"name": "stripe", "in": "path", "required": true, "schema": {"type": "integer", "exclusiveMinimum": 7}}],
		"get": {
			"deprecated": true,
			"parameters": [
				{"name": "Zebra-Header", "in": "header", "description": "A zebra's **own** header.", "deprecated": true,
					"schema": {"type": "string", "enum": ["left", "right"], "default": "left"}},
				{"name": "gait", "in": "query", "schema": {"$ref": "#/components/schemas/Gait"}}
			],
			"responses": {"200": {
				"description": "A zebra of the zoo.",
				"headers": {"Zebra-Age": {"schema": {"type": "integer", "const": 12}}},
				"content": {"application/json": {
					"schema": {"type": "object", "properties": {
						"herd": {"type": "array", "maxItems": 3, "items": {"$ref": "#/components/schemas/Zebra"}},
						"gait": {"anyOf": [{"$ref": "#/components/schemas/Gait"}, {"type": "null"}], "description": "How it runs."}
					}},
					"example": {"zebra_example": "<b>7</b>"}
				}}
			}}
		},
		"put": {"security": [{"zebraKey": []}], "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Zebra"}}}}, "responses": {}}
	}},
	"components": {"schemas": {
		"Gait": {"type": "string", "description": "A <i>pace</i>.", "minLength": 2, "x-zebra": "unknown keyword"},
		"Zebra": {"type": "object", "required": ["foal"], "properties": {"foal": {"$ref": "#/components/schemas/Zebra"}}}
	}}
}`

// changed shows the reference a description with changes: it must show them all.
func (c *checks) changed() {
	s := c.start("demo", "-addr", "127.0.0.1:0")
	defer s.stop()
	original, _ := shell("curl " + s.root + "/openapi.json")
	var description, more map[string]any
	must(json.Unmarshal([]byte(original), &description))
	must(json.Unmarshal([]byte(changes), &more))
	merge(description, more)
	t := c.open(s.root+"/", c.width, func(t *tab) {
		t.openAPI = []byte(js(description))
		patterns := []map[string]string{{"urlPattern": "*/openapi.json"}}
		t.call("Fetch.enable", map[string]any{"patterns": patterns}, nil)
	})
	t.wait("document.querySelectorAll('section').length === 8")
	section := "[...document.querySelectorAll('section')].at(-2)"
	shown := t.text("document.querySelector('main').textContent")
	for _, want := range []string{
		"docs.example/zebra", "Zebra keeper", "/zebras/{stripe}", "exclusiveMinimum 7", "deprecated true",
		"A zebra's own header.", "one of left, right", "default left", "A zebra of the zoo.", "Zebra-Age", "always 12",
		"herd", "at most 3 items", "herd[].foal", "How it runs.", "string or null", "A <i>pace</i>.",
		"at least 2 characters", "x-zebra unknown keyword", `security [{"zebraKey":[]}]`,
		`"zebra_example": "<b>7</b>"`,
	} {
		if !strings.Contains(shown, want) {
			fail("the page lacks %s", want)
		}
	}
	equal("operations that show their security", strings.Count(shown, "security ["), 1)
	input := func(name string) string { return section + ".querySelector('[name=" + name + "]')" }
	t.write(input("stripe"), "a/b'c")
	t.write(input("Zebra-Header"), "right")
	t.write(input("gait"), "trot & walk")
	line := t.text(section + ".querySelector('.curl').textContent")
	for _, want := range []string{`/zebras/a%2Fb'\''c?gait=trot+%26+walk'`, "-H 'Zebra-Header: right'"} {
		if !strings.Contains(line, want) {
			fail("the curl line lacks %s: %s", want, line)
		}
	}
	t.looks()
	t.quiet()
	t.close()
}

// merge adds the members of an object to those of another one, at any depth.
func merge(to, from map[string]any) {
	for name, value := range from {
		mine, isObject := to[name].(map[string]any)
		theirs, areBoth := value.(map[string]any)
		if isObject && areBoth {
			merge(mine, theirs)
		} else {
			to[name] = value
		}
	}
}
