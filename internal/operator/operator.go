// Package operator has the subcommands with which an operator manages users, keys, events and guests. They
// are clients of these HTTP routes, which a server serves on a Unix socket next to its data file:
//
//	POST /keys          {"user_id"} or {"email","name"}   201 {"id","secret","user_id"}
//	GET /keys                                             200 {"data":[…]}
//	DELETE /keys/{id}                                     204
//	GET /records?user_id=                                 200 an array of records
//	POST /records       an array of records               200 {"applied","unchanged"}
//	GET /status                                           200 a [Status]
//
// Without a server, all subcommands but status open the data file and serve the routes to themselves.
package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/events/internal/cli"
	"example.com/events/internal/strict"
)

// CLI has the operator's subcommands. Its methods take the arguments after the subcommand.
type CLI struct {
	*cli.Program

	// Open opens an existing data file and returns the handler of its routes. Reads must still work after the
	// file is closed, and it may be closed twice.
	Open func(data string) (http.Handler, io.Closer, error)
}

// KeyIssue runs "eventsd key issue". A user with a new email is created.
func (c *CLI) KeyIssue(ctx context.Context, args []string) error {
	flags := cli.NewFlags("key issue", cli.Help{
		Purpose: "Create an API key for a user and print its secret, which isn't shown again.",
		Example: "a key for a new user\n" +
			"  eventsd key issue -name 'Ada Lovelace' -email ada@example.com",
	})
	data := cli.DataFlag(flags)
	email := flags.String("email", "", "issue the key to the user with this `EMAIL`, or to a new user")
	name := flags.String("name", "", "`NAME` of a new user")
	user := flags.String("user", "", "issue the key to the user with this `ID`")
	asJSON := flags.Bool("json", false, `print {"id","secret","user_id"} as JSON`)
	if err := c.Parse(flags, args); err != nil {
		return err
	}
	if *user == "" && *email == "" {
		return cli.Usagef("expected a user: -email EMAIL with -name NAME for a new user, or -user ID")
	}
	request := strict.Encode(map[string]string{"user_id": *user, "email": *email, "name": *name})
	var issued struct {
		ID, Secret string
		User       string `json:"user_id"`
	}
	text, err := c.callJSON(ctx, *data, "POST", "/keys", bytes.NewReader(request), &issued)
	if err != nil {
		return err
	}
	if issued.Secret == "" {
		return fmt.Errorf("the server has another version and didn't send the secret: restart it, and "+
			"revoke %s", issued.ID)
	}
	c.Messagef("issued %s for %s; the secret is shown only this once", issued.ID, issued.User)
	if *asJSON {
		return c.printJSON(text)
	}
	return c.Printf("%s\n", issued.Secret)
}

// KeyList runs "eventsd key list". With -json, it prints what the server sends.
func (c *CLI) KeyList(ctx context.Context, args []string) error {
	flags := cli.NewFlags("key list", cli.Help{
		Purpose: "List all API keys with their users. Secrets aren't stored, so they can't be listed.",
		Example: "the keys of a user\n  eventsd key list | grep ada@example.com",
	})
	data := cli.DataFlag(flags)
	asJSON := flags.Bool("json", false, "print JSON")
	if err := c.Parse(flags, args); err != nil {
		return err
	}
	var list struct{ Data json.RawMessage }
	_, err := c.callJSON(ctx, *data, "GET", "/keys", nil, &list)
	if err != nil {
		return err
	}
	if *asJSON {
		return c.printJSON(list.Data)
	}
	var keys []map[string]any // a newer server may send other fields
	err = json.Unmarshal(list.Data, &keys)
	if err != nil {
		return err
	}
	return c.Printf("%s", keyTable(keys))
}

func keyTable(keys []map[string]any) string {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tUSER\tNAME\tEMAIL\tHINT\tCREATED\tREVOKED")
	for _, key := range keys {
		text := func(field string) string { s, _ := key[field].(string); return s }
		name := strings.Join(strings.Fields(text("name")), " ") // without line feeds
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", text("id"), text("user_id"), name, text("email"),
			cmp.Or(text("hint"), "-"), text("created_at"), cmp.Or(text("revoked_at"), "-"))
	}
	w.Flush()
	return table.String()
}

// KeyRevoke runs "eventsd key revoke". Revoking a key again is no error.
func (c *CLI) KeyRevoke(ctx context.Context, args []string) error {
	flags := cli.NewFlags("key revoke", cli.Help{
		Purpose:  "Revoke an API key. Requests with it fail immediately.",
		Operands: "ID",
		Example:  "find a key and revoke it\n  eventsd key list\n  eventsd key revoke key_1",
	})
	data := cli.DataFlag(flags)
	if err := c.Parse(flags, args); err != nil {
		return err
	}
	id := flags.Arg(0)
	if flags.NArg() != 1 || !strings.HasPrefix(id, "key_") {
		return cli.Usagef("expected one key ID after the flags; eventsd key list shows the IDs")
	}
	err := c.call(ctx, *data, "DELETE", "/keys/"+url.PathEscape(id), nil, io.Discard)
	if err != nil {
		return err
	}
	c.Messagef("revoked %s", id)
	return nil
}

// Apply runs "eventsd apply".
func (c *CLI) Apply(ctx context.Context, args []string) error {
	flags := cli.NewFlags("apply", cli.Help{
		Purpose: "Read records from FILE, or from stdin, and add, change or delete users, keys, events\n" +
			"and guests, whether or not the server is running. Either all records are applied or none.",
		Operands: "[FILE | -]",
		Example: "publish a draft\n" +
			`  echo '[{"event":{"id":"evt_1","status":"published"}}]' | eventsd apply`,
	})
	data := cli.DataFlag(flags)
	if err := c.Parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() > 1 {
		return cli.Usagef("expected one FILE, or - for stdin: eventsd apply FILE")
	}
	file := "-"
	if flags.NArg() > 0 {
		file = flags.Arg(0)
	}
	records, err := c.ReadInput(file)
	if err != nil {
		return err
	}
	var count struct{ Applied, Unchanged int }
	stop := c.Progress("apply")
	_, err = c.callJSON(ctx, *data, "POST", "/records", bytes.NewReader(records), &count)
	stop()
	if err != nil {
		return err
	}
	message := fmt.Sprintf("applied %d records", count.Applied)
	if count.Applied == 1 {
		message = "applied 1 record"
	}
	if count.Unchanged > 0 {
		message += fmt.Sprintf(", %d unchanged", count.Unchanged)
	}
	c.Messagef("%s", message)
	return nil
}

// Dump runs "eventsd dump".
func (c *CLI) Dump(ctx context.Context, args []string) error {
	flags := cli.NewFlags("dump", cli.Help{
		Purpose: "Print all records, as a backup or as a seed for another server. The dump contains no\n" +
			"secrets, but its keys still work after you apply it.",
		Example: "a backup\n  eventsd dump -o backup.json",
	})
	data := cli.DataFlag(flags)
	output := flags.String("o", "-", "write to `FILE`, completely or not at all, instead of stdout")
	user := flags.String("user", "", "print only the records of the user with this `ID`")
	if err := c.Parse(flags, args); err != nil {
		return err
	}
	path := "/records"
	if *user != "" {
		path += "?user_id=" + url.QueryEscape(*user)
	}
	if besideData(*output, *data) {
		return cli.Usagef("-o %s is the data file, or begins with its name: choose a different FILE", *output)
	}
	if *output == "-" {
		return c.call(ctx, *data, "GET", path, nil, c.Stdout)
	}
	defer c.Progress("dump")()
	return cli.WriteFile(*output, func(w io.Writer) error {
		return c.call(ctx, *data, "GET", path, nil, w)
	})
}

// besideData reports whether a path is the data file or a file such as its lock. It ignores case in names, as
// some disks do.
func besideData(path, data string) bool {
	data = resolve(data)
	name, dataName := strings.ToLower(filepath.Base(path)), strings.ToLower(filepath.Base(data))
	return sameFile(path, data) ||
		sameFile(filepath.Dir(path), filepath.Dir(data)) && strings.HasPrefix(name, dataName)
}

func sameFile(a, b string) bool {
	aInfo, aErr := os.Stat(a)
	bInfo, bErr := os.Stat(b)
	return aErr == nil && bErr == nil && os.SameFile(aInfo, bInfo)
}

// resolve follows symbolic links, if the file exists.
func resolve(data string) string {
	resolved, err := filepath.EvalSymlinks(data)
	if err != nil {
		return data
	}
	return resolved
}

// A Status is the state of a running server.
type Status struct {
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
	Error     *string `json:"error"` // current write error
}

// Status runs "eventsd status".
func (c *CLI) Status(ctx context.Context, args []string) error {
	flags := cli.NewFlags("status", cli.Help{
		Purpose: "Print the state of the running server as JSON. If none is running, the exit status is 1.",
		Example: "the current write error, or null\n  eventsd status | jq .error",
	})
	data := cli.DataFlag(flags)
	if err := c.Parse(flags, args); err != nil {
		return err
	}
	conn, err := dialSocket(*data)
	if err != nil {
		return err
	}
	var response bytes.Buffer
	err = roundTrip(ctx, conn, "GET", "/status", nil, &response)
	if err != nil {
		return err
	}
	return c.printJSON(response.Bytes())
}

// healthClient uses no proxy, even if the environment sets one.
var healthClient = http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Health runs "eventsd health", which doesn't use the operator's routes.
func (c *CLI) Health(ctx context.Context, args []string) error {
	flags := cli.NewFlags("health", cli.Help{
		Purpose: "Exit with 0 if the server at an address is healthy, otherwise with 1.",
		Example: "the HEALTHCHECK of a container\n  eventsd health -addr 127.0.0.1:8080",
	})
	addr := flags.String("addr", "127.0.0.1:8080", "`HOST:PORT` of the server")
	if err := c.ParseEnv(flags, args); err != nil {
		return err
	}
	root := cli.BaseURL(*addr, "127.0.0.1")
	response, err := healthClient.Get(root + "/healthz")
	if err != nil {
		return fmt.Errorf("no response: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode == 200 {
		return c.Printf("ok: %s\n", root)
	}
	message := cmp.Or(errorMessage(response), "this isn't an eventsd server")
	return fmt.Errorf("%s: %s: %s", root, response.Status, message)
}

// printJSON prints JSON and a line feed.
func (c *CLI) printJSON(text []byte) error {
	_, err := fmt.Fprintf(c.Stdout, "%s\n", text)
	return err
}
