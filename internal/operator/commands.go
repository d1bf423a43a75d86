package operator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"example.com/events/internal/command"
	"example.com/events/internal/strict"
)

// Files is what the subcommands need of the program to work on a data file without a server.
type Files interface {
	// Open opens the store of a data file for a command that changes it, to be closed after use.
	// A file that is missing is an error. If another process has the file,
	// it waits for one that will soon be done, and the error is a [*HeldError].
	Open(data, subcommand string) (Store, error)
	// Look returns the store of a data file as it is at the moment. It changes nothing and stands
	// in nobody's way.
	Look(data string) (Store, error)
	// Holder is the process that has a data file open and what it is to others, or 0.
	Holder(data string) (pid int, holder string)
	// Socket is the path of the socket of the server that has a data file open.
	Socket(data string) string
	// BelongsTo reports whether a path is that of a data file or of what stands beside it.
	BelongsTo(data, path string) bool
	// Records reads an array of records from a file, or from standard input if the path is "-". It
	// refuses a data file.
	Records(path string) ([]byte, error)
}

// DataFlag declares -data, the flag of every subcommand that works on a data file.
func DataFlag(flags *command.Flags, data *string) {
	flags.String(data, "data", "events.json", "the data `FILE`")
}

// jsonFlag declares -json, the flag of the subcommands whose answer a program may want to read.
func jsonFlag(flags *command.Flags, json *bool) {
	flags.Bool(json, "json", false, "print JSON")
	flags.NoVariable("json")
}

// tool is the operator's subcommands of a program.
type tool struct {
	program *command.Program
	files   Files
}

// AddCommands adds the operator's subcommands to a program.
func AddCommands(p *command.Program, files Files) {
	t := &tool{p, files}
	p.Add("key issue", "", "make an API key for a user and print it: it is shown this once", t.keyIssue)
	p.Add("key list", "", "list the keys, without their secrets", t.list("keys",
		"id", "user_id", "name", "email", "hint", "created_at", "revoked_at"))
	p.Add("key revoke", "ID", "end a key for good", t.keyRevoke)
	p.Add("apply", "[FILE|-]",
		"put an array of records into the store, all or none; see docs/records.md", t.apply)
	p.Add("dump", "", "print the store as an array of records, which is a seed", t.dump)
	p.Add("status", "", "print what the running server has, and whether it can write", t.status)
}

// dial connects to the server that has a data file open.
func (t *tool) dial(data string) (*client, error) {
	conn, err := command.DialSocket(t.files.Socket(data), data)
	if err != nil {
		return nil, err
	}
	return &client{Conn: conn}, nil
}

// look calls do with the store of the running server or, if none can be running, with what the
// data file holds at the moment.
func (t *tool) look(data string, do func(Store) error) error {
	return t.with(data, do, func() (Store, error) { return t.files.Look(data) })
}

// change calls do with the store of the running server or, if none can be running, with that of
// the data file.
func (t *tool) change(data, subcommand string, do func(Store) error) error {
	return t.with(data, do, func() (Store, error) {
		store, err := t.files.Open(data, subcommand)
		if isServing(err) { // it was starting when it was dialled
			server, dialErr := t.dial(data)
			if dialErr == nil {
				return server, nil
			}
			if !errors.Is(dialErr, command.ErrNobody) {
				return nil, dialErr
			}
		}
		return store, err
	})
}

// with calls do with the store of the running server or, if none can be running, with the one
// that open returns.
func (t *tool) with(data string, do func(Store) error, open func() (Store, error)) error {
	var store Store
	server, err := t.dial(data)
	if err == nil {
		store = server
	}
	if errors.Is(err, command.ErrNobody) {
		store, err = open()
	}
	if err != nil {
		return err
	}
	err = do(store)
	return errors.Join(err, store.Close())
}

func (t *tool) keyIssue(flags *command.Flags) func() error {
	var data, name, email, user string
	var asJSON bool
	DataFlag(flags, &data)
	jsonFlag(flags, &asJSON)
	flags.String(&name, "name", "", "`NAME` of the user, if the email is new")
	flags.String(&email, "email", "", "`EMAIL` of the user")
	flags.String(&user, "user", "", "`ID` of an existing user, in place of an email")
	flags.NoVariable("name", "email", "user")
	return func() error {
		if user == "" && email == "" {
			return command.Usage(errors.New("key issue takes -user ID, or -email EMAIL and, if that is new, -name NAME"))
		}
		request := strict.Encode(map[string]string{"user_id": user, "name": name, "email": email})
		return t.change(data, "key issue", func(s Store) error {
			issued, err := s.IssueKeyJSON(request)
			if err != nil {
				return err
			}
			// The id comes first: if nobody reads stdout, printing ends the process (SIGPIPE).
			key, err := findKey(s, issued["id"])
			if err == nil {
				t.program.Notice("issued %s; the secret is shown this once", whose(key))
				if name != "" && name != key["name"] {
					t.program.Notice("-name was not used: the user with this email is %s", key["name"])
				}
			}
			if asJSON {
				return errors.Join(err, t.program.Printf("%s\n", strict.Encode(issued)))
			}
			return errors.Join(err, t.program.Printf("%s\n", command.Printable(issued["key"])))
		})
	}
}

// findKey returns the members of a key, of which null is "".
func findKey(s Store, id string) (members map[string]string, err error) {
	key, err := s.Key(id)
	if err == nil {
		err = json.Unmarshal(key, &members)
	}
	return members, err
}

// whose names a key and its user.
func whose(key map[string]string) string {
	return fmt.Sprintf("%s of %s, %s (%s)", key["id"], key["name"], key["email"], key["user_id"])
}

// list is the subcommand that prints a list of a kind: for people a table of these members.
func (t *tool) list(kind string, members ...string) func(*command.Flags) func() error {
	return func(flags *command.Flags) func() error {
		var data string
		var asJSON bool
		DataFlag(flags, &data)
		jsonFlag(flags, &asJSON)
		return func() error {
			return t.look(data, func(s Store) error {
				list, err := s.List(kind)
				if err != nil {
					return err
				}
				if asJSON {
					return t.program.Printf("%s\n", list)
				}
				array, err := strict.Parse(list)
				if err != nil {
					return err
				}
				return t.program.Printf("%s", command.Printable(table(array, members)))
			})
		}
	}
}

// table is a table of objects for people. The member created_at has the head CREATED, and user_id
// has USER.
func table(array strict.Value, members []string) string {
	var table bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	row := make([]string, len(members))
	for i, member := range members {
		head := strings.TrimSuffix(strings.TrimSuffix(member, "_at"), "_id")
		row[i] = strings.ToUpper(head)
	}
	fmt.Fprintln(tw, strings.Join(row, "\t"))
	for _, object := range array.Members {
		clear(row)
		for _, m := range object.Value.Members {
			words := strings.Fields(m.Value.Text) // of a name that may have line ends
			i := slices.Index(members, m.Name)
			if i >= 0 {
				row[i] = strings.Join(words, " ")
			}
		}
		for i := range row {
			row[i] = cmp.Or(row[i], "-")
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	tw.Flush() // into a buffer: it cannot fail
	return table.String()
}

// keyRevoke revokes a key and reports whose it was.
func (t *tool) keyRevoke(flags *command.Flags) func() error {
	var data string
	DataFlag(flags, &data)
	return func() error {
		if len(flags.Args) != 1 || !strings.HasPrefix(flags.Args[0], "key_") {
			return command.Usage(errors.New("key revoke takes one ID after its flags: key_…, as eventsd key list shows it"))
		}
		id := flags.Args[0]
		return t.change(data, "key revoke", func(s Store) error {
			key, err := findKey(s, id) // as it was before
			if err != nil {
				return err
			}
			err = s.RevokeKey(id)
			if err != nil {
				return err
			}
			if key["revoked_at"] != "" {
				t.program.Notice("%s was revoked before, at %s", whose(key), key["revoked_at"])
			} else {
				t.program.Notice("revoked %s", whose(key))
			}
			return nil
		})
	}
}

func (t *tool) apply(flags *command.Flags) func() error {
	var data string
	var asJSON bool
	DataFlag(flags, &data)
	jsonFlag(flags, &asJSON)
	return func() error {
		if len(flags.Args) > 1 {
			return command.Usage(errors.New("apply takes one FILE after its flags, or - for standard input"))
		}
		path := "-"
		if len(flags.Args) == 1 {
			path = flags.Args[0]
		}
		records, err := t.files.Records(path)
		if err != nil {
			return err
		}
		if t.files.BelongsTo(data, path) { // such as FILE.tmp, which the next rewrite removes
			return fmt.Errorf("%s belongs to the data file; give the records another path", path)
		}
		return t.change(data, "apply", func(s Store) error {
			end := progress(t.program.Stderr, "apply")
			count, _, err := s.ApplyRecords(records)
			end()
			if err != nil {
				return err
			}
			if asJSON {
				return t.program.Printf("{\"applied\":%d,\"unchanged\":%d}\n",
					count["applied"], count["unchanged"])
			}
			t.program.Notice("%s", applied(count["applied"], count["unchanged"]))
			return nil
		})
	}
}

// applied says how many records were applied, and how many of them changed nothing.
func applied(records, unchanged int) string {
	said := fmt.Sprintf("applied %d records", records)
	if records == 1 {
		said = "applied 1 record"
	}
	if unchanged > 0 {
		said += fmt.Sprintf(", of which %d changed nothing", unchanged)
	}
	return said
}

func (t *tool) dump(flags *command.Flags) func() error {
	var data, output, user string
	DataFlag(flags, &data)
	flags.String(&user, "user", "", "`ID` of the user whose records alone are printed")
	flags.String(&output, "o", "-", "`FILE` to write, whole or not at all, or - for stdout")
	flags.NoVariable("o", "user")
	return func() error {
		if user == "" && flags.Given("user") {
			return command.Usage(errors.New("-user is empty: give the ID of a user, or leave -user out for all records"))
		}
		write := func(w io.Writer) error {
			return t.look(data, func(s Store) error {
				if user == "" {
					return s.WriteRecords(w)
				}
				write, err := s.UserRecords(user)
				if err != nil {
					return err
				}
				return write(w)
			})
		}
		if output == "-" {
			return write(t.program.Stdout)
		}
		if t.files.BelongsTo(data, output) {
			return fmt.Errorf("%s belongs to the data file; give another path", output)
		}
		return command.WriteFile(output, func(w io.Writer) error {
			defer progress(t.program.Stderr, "dump")()
			return write(w)
		})
	}
}

// status prints what the running server answers about itself.
func (t *tool) status(flags *command.Flags) func() error {
	var data string
	var asJSON bool
	DataFlag(flags, &data)
	jsonFlag(flags, &asJSON)
	return func() error {
		server, err := t.dial(data)
		if errors.Is(err, command.ErrNobody) {
			pid, holder := t.files.Holder(data)
			return errors.New(whyUnanswered(data, t.files.Socket(data), pid, holder))
		}
		if err != nil {
			return err
		}
		defer server.Close()
		answer, err := decode[json.RawMessage](server, "GET", "/status", nil)
		if err != nil {
			return err
		}
		if asJSON {
			return t.program.Printf("%s\n", answer)
		}
		return t.program.Printf("%s", command.Lines(answer))
	}
}

// whyUnanswered says why no server answers on the socket of a data file, by the process that has the
// file open, if one has.
func whyUnanswered(data, socket string, pid int, holder string) string {
	switch {
	case pid != 0 && holder == Starting:
		return fmt.Sprintf("a server is starting on %s: process %d", data, pid)
	case pid != 0 && isOff(holder):
		return fmt.Sprintf("a server runs on %s, process %d, and cannot be asked: %s", data, pid, holder)
	case pid != 0 && isListening(holder):
		return fmt.Sprintf("a server runs on %s, process %d, and its socket %s is gone; restart it to get "+
			"a new one", data, pid, socket)
	case pid != 0 && holder != "":
		return fmt.Sprintf("no server runs on %s: process %d has it, which is %s", data, pid, holder)
	}
	return fmt.Sprintf("no server runs on %s: nobody listens on %s", data, socket)
}
