package operator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"example.com/events/internal/command"
	"example.com/events/internal/strict"
)

// Files is what the subcommands need of the program to work on its data file.
type Files interface {
	// Open opens the store of the data file, which no server may have open, to be closed
	// after use. A file that is missing is an error unless create is set.
	Open(create bool) (Store, error)
	// Records reads an array of records from a file, or from standard input if the
	// path is "-", and refuses a data file.
	Records(path string) ([]byte, error)
	// Salvage writes every record of the damaged data file that can still be read, as an
	// array, and reports on stderr what was skipped or is missing.
	Salvage(w io.Writer) error
}

// tool is the subcommands of one run of a program.
type tool struct {
	*command.Program
	files Files

	name, email, user, output string
	create, json, salvage     bool
}

// AddCommands declares the operator's flags, of which -data is that of the whole program, and
// adds the operator's subcommands.
func AddCommands(p *command.Program, files Files) {
	t := &tool{Program: p, files: files}
	fs := &p.Flags
	fs.StringVar(&p.Data, "data", "events.json", "the data `FILE`")
	fs.BoolVar(&t.create, "create", false, "make a new data file if there is none")
	fs.BoolVar(&t.json, "json", false, "print JSON")
	fs.StringVar(&t.name, "name", "", "`NAME` of the user, if the email is new")
	fs.StringVar(&t.email, "email", "", "`EMAIL` of the user")
	fs.StringVar(&t.user, "user", "", "`ID` of an existing user, in place of an email")
	fs.StringVar(&t.output, "o", "-", "`FILE` to write, whole or not at all, or - for stdout")
	fs.BoolVar(&t.salvage, "salvage", false, "print what can still be read of a damaged data file")
	p.Add("key issue", "", "make an API key for a user and print it: it is shown this once",
		"data create json name email user", t.keyIssue)
	p.Add("key list", "", "list the keys, without their secrets", "data json", t.keyList)
	p.Add("key revoke", "ID", "end a key for good", "data", t.keyRevoke)
	p.Add("apply", "[FILE|-]",
		"put an array of records into the store, all or none; see docs/records.md",
		"data create json", t.apply)
	p.Add("dump", "", "print the store as an array of records, which is a seed", "data o salvage", t.dump)
	p.Add("status", "", "print what the running server has, and whether it can write",
		"data json", t.status)
}

// withStore runs do on the store of the running server or, if none runs, on the data
// file.
func (t *tool) withStore(do func(Store) error) error {
	var store Store
	conn, err := t.DialSocket(t.Data)
	if conn != nil {
		store = &client{Conn: conn}
	} else if err == nil {
		store, err = t.files.Open(t.create)
	}
	if err != nil {
		return err
	}
	err = do(store)
	return errors.Join(err, store.Close())
}

func (t *tool) keyIssue() error {
	if (t.user == "") == (t.email == "") || t.user != "" && t.name != "" {
		return errors.New("key issue takes -user ID, or -email EMAIL and, if that is new, -name NAME")
	}
	request := map[string]string{"user_id": t.user, "name": t.name, "email": t.email}
	return t.withStore(func(s Store) error {
		issued, err := s.IssueKey(strict.Encode(request))
		if err != nil {
			return err
		}
		text := issued["key"]
		if t.json {
			text = string(strict.Encode(issued))
		}
		// The id comes first: if nobody reads stdout, printing ends the process (SIGPIPE).
		key, err := findKey(s, issued["id"])
		if err == nil {
			t.Notice("issued %s; the secret is shown this once", whose(key))
			if t.name != "" && t.name != key["name"] {
				t.Notice("-name was not used: the user with this email is %s", key["name"])
			}
		}
		return errors.Join(err, t.Printf("%s\n", command.Printable(text)))
	})
}

// findKey returns the key with an id as the list of keys has it, where null is "". It is
// nil if there is no such key.
func findKey(s Store, id string) (map[string]string, error) {
	list, err := s.Keys()
	var keys []map[string]string
	if err == nil {
		err = json.Unmarshal(list, &keys)
	}
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

func (t *tool) keyList() error {
	return t.withStore(func(s Store) error {
		list, err := s.Keys()
		if err != nil {
			return err
		}
		if t.json {
			return t.Printf("%s\n", list)
		}
		var keys []map[string]string // of which null is ""
		err = json.Unmarshal(list, &keys)
		if err != nil {
			return err
		}
		var table bytes.Buffer
		tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "ID\tUSER\tNAME\tEMAIL\tHINT\tCREATED\tREVOKED")
		members := []string{
			"id", "user_id", "name", "email", "hint", "created_at", "revoked_at",
		}
		for _, key := range keys {
			var row []string
			for _, member := range members {
				words := strings.Fields(key[member]) // of a name that may have line ends
				cell := strings.Join(words, " ")
				row = append(row, cmp.Or(cell, "-"))
			}
			fmt.Fprintln(tw, strings.Join(row, "\t"))
		}
		tw.Flush() // into a buffer: it cannot fail
		return t.Printf("%s", command.Printable(table.String()))
	})
}

// keyRevoke revokes a key and reports whose it was.
func (t *tool) keyRevoke() error {
	if len(t.Args) != 1 || !strings.HasPrefix(t.Args[0], "key_") {
		return errors.New("key revoke takes one ID after its flags: key_…, as eventsd key list shows it")
	}
	id := t.Args[0]
	return t.withStore(func(s Store) error {
		key, err := findKey(s, id) // as it was before
		if err != nil {
			return err
		}
		err = s.RevokeKey(id)
		if err != nil {
			return err
		}
		if key["revoked_at"] != "" {
			t.Notice("%s was revoked before, at %s", whose(key), key["revoked_at"])
		} else {
			t.Notice("revoked %s", whose(key))
		}
		return nil
	})
}

func (t *tool) apply() error {
	if len(t.Args) > 1 {
		return errors.New("apply takes one FILE after its flags, or - for standard input")
	}
	path := "-"
	if len(t.Args) == 1 {
		path = t.Args[0]
	}
	records, err := t.files.Records(path)
	if err != nil {
		return err
	}
	return t.withStore(func(s Store) error {
		defer command.SaveMemory(len(records))()
		count, err := s.ApplyRecords(records)
		if err != nil {
			return err
		}
		unchanged := count["unchanged"]
		if t.json {
			return t.Printf("{\"applied\":%d,\"unchanged\":%d}\n", count["applied"], unchanged)
		}
		nothing := ""
		if unchanged > 0 {
			nothing = fmt.Sprintf(", of which %d changed nothing", unchanged)
		}
		t.Notice("applied %d records%s", count["applied"], nothing)
		return nil
	})
}

func (t *tool) dump() error {
	write := func(w io.Writer) error {
		if t.salvage {
			return t.files.Salvage(w)
		}
		return t.withStore(func(s Store) error {
			return command.Failed(s.WriteRecords(w))
		})
	}
	if t.output == "-" {
		return write(t.Stdout)
	}
	return command.WriteFile(t.output, t.Data, write)
}

// status prints what the running server answers about itself.
func (t *tool) status() error {
	conn, err := t.DialSocket(t.Data)
	if err != nil {
		return err
	}
	if conn == nil {
		return command.Failed(fmt.Errorf("no server runs on %s: nobody listens on %s",
			t.Data, command.SocketPath(t.Data)))
	}
	defer conn.Close()
	answer, err := decode[json.RawMessage](&client{Conn: conn}, "GET", "/status", nil)
	if err != nil {
		return err
	}
	if t.json {
		return t.Printf("%s\n", answer)
	}
	return t.Printf("%s", command.Printable(command.Lines(answer)))
}
