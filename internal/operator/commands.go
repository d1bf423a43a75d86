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
	// Open opens the store of a data file, to be closed after use. A file that is missing is an error.
	Open(data string) (Store, error)
	// Socket is the path of the socket of the server that has a data file open.
	Socket(data string) string
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
	p.Add("key list", "", "list the keys, without their secrets", t.keyList)
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

// open returns the store of the running server or, if none can be running, that of the data file.
func (t *tool) open(data string) (store Store, running bool, err error) {
	server, err := t.dial(data)
	if err == nil {
		return server, true, nil
	}
	if errors.Is(err, command.ErrNobody) {
		store, err = t.files.Open(data)
	}
	return store, false, err
}

// look calls do, which changes nothing, with a store. A data file is closed first, because do may take long
// to print, and the store keeps everything in memory.
func (t *tool) look(data string, do func(Store) error) error {
	store, running, err := t.open(data)
	if err != nil {
		return err
	}
	if running {
		return errors.Join(do(store), store.Close())
	}
	err = store.Close()
	if err != nil {
		return err
	}
	return do(store)
}

// change calls do with a store.
func (t *tool) change(data string, do func(Store) error) error {
	store, _, err := t.open(data)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
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
			return command.Usagef(
				"key issue takes -user ID, or -email EMAIL and, if that is new, -name NAME")
		}
		request := strict.Encode(map[string]string{"user_id": user, "name": name, "email": email})
		return t.change(data, func(s Store) error {
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

// findKey returns the members of a key, of which null is "". There are none if there is no such key.
func findKey(s Store, id string) (map[string]string, error) {
	list, err := s.Keys()
	if err != nil {
		return nil, err
	}
	var keys []map[string]string
	err = json.Unmarshal(list, &keys)
	for _, key := range keys {
		if key["id"] == id {
			return key, err
		}
	}
	return nil, err
}

// whose names a key and its user.
func whose(key map[string]string) string {
	return fmt.Sprintf("%s of %s, %s (%s)", key["id"], key["name"], key["email"], key["user_id"])
}

// keyList prints the keys.
func (t *tool) keyList(flags *command.Flags) func() error {
	var data string
	var asJSON bool
	DataFlag(flags, &data)
	jsonFlag(flags, &asJSON)
	return func() error {
		return t.look(data, func(s Store) error {
			list, err := s.Keys()
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
			columns := []string{"id", "user_id", "name", "email", "hint", "created_at", "revoked_at"}
			return t.program.Printf("%s", command.Printable(table(array, columns)))
		})
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
			return command.Usagef(
				"key revoke takes one ID after its flags: key_…, as eventsd key list shows it")
		}
		id := flags.Args[0]
		return t.change(data, func(s Store) error {
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
	DataFlag(flags, &data)
	return func() error {
		if len(flags.Args) > 1 {
			return command.Usagef("apply takes one FILE after its flags, or - for standard input")
		}
		path := "-"
		if len(flags.Args) == 1 {
			path = flags.Args[0]
		}
		records, err := t.files.Records(path)
		if err != nil {
			return err
		}
		return t.change(data, func(s Store) error {
			end := progress(t.program.Stderr, "apply")
			count, _, err := s.ApplyRecords(records)
			end()
			if err != nil {
				return err
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
			return command.Usagef(
				"-user is empty: give the ID of a user, or leave -user out for all records")
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
			return fmt.Errorf("no server answers for %s: nobody listens on %s", data, t.files.Socket(data))
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
