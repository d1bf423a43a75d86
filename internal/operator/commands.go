package operator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/events/internal/command"
	"example.com/events/internal/strict"
)

// Files is what the subcommands need of the program to work on a data file.
type Files struct {
	// Open opens the store of a data file, which no server may have open, to be
	// closed after use. A file that is missing is an error unless create is set.
	Open func(path string, create bool) (store Store, closeStore func() error, err error)
	// Records reads an array of records from a file, or from standard input if the
	// path is "-", and refuses a data file.
	Records func(path string) ([]byte, error)
	// Salvage prints every record of a damaged data file that can still be read, as
	// an array, and on stderr what was skipped or is missing.
	Salvage func(path string) error
}

// tool is the subcommands of one run of a program.
type tool struct {
	*command.Program
	files Files

	data, name, email, user string
	json, salvage           bool
}

// Commands are the operator's subcommands.
func Commands(p *command.Program, files Files) []command.Command {
	t := &tool{Program: p, files: files}
	data := func(fs *flag.FlagSet) {
		fs.StringVar(&t.data, "data", "events.json", "the data `FILE` of the server")
	}
	return []command.Command{{
		Name: "key issue", Run: t.keyIssue,
		Summary: "make an API key for a user and print it: it is shown this once",
		Flags: func(fs *flag.FlagSet) {
			data(fs)
			fs.StringVar(&t.name, "name", "", "`NAME` of the user, if the email is new")
			fs.StringVar(&t.email, "email", "", "`EMAIL` of the user")
			fs.StringVar(&t.user, "user", "", "`ID` of an existing user, in place of an email")
			fs.BoolVar(&t.json, "json", false, "print the ids of the key and its user, too, as JSON")
		},
	}, {
		Name: "key list", Run: t.keyList,
		Summary: "list the keys, without their secrets",
		Flags: func(fs *flag.FlagSet) {
			data(fs)
			fs.BoolVar(&t.json, "json", false, "print JSON")
		},
	}, {
		Name: "key revoke", Args: "ID", Run: t.keyRevoke, Flags: data,
		Summary: "end a key for good",
	}, {
		Name: "apply", Args: "[FILE|-]", Run: t.apply, Flags: data,
		Summary: "put an array of records into the store, all or none; see docs/records.md",
	}, {
		Name: "dump", Run: t.dump,
		Summary: "print the store as an array of records, which is a seed",
		Flags: func(fs *flag.FlagSet) {
			data(fs)
			fs.BoolVar(&t.salvage, "salvage", false, "print what can still be read of a damaged data file")
		},
	}}
}

// withStore runs do on the store of the running server or, if none runs, on the data
// file. A file that is missing is an error unless create is set.
func (t *tool) withStore(create bool, do func(ask) error) error {
	conn, err := net.DialTimeout("unix", command.SocketPath(t.data), time.Second)
	if err == nil {
		defer conn.Close()
		return do(askServer(conn))
	}
	store, closeStore, err := t.files.Open(t.data, create)
	if err != nil {
		return err
	}
	// No server runs, so there is no base URL.
	return errors.Join(do(StoreRoutes(store, func(string) string { return "" }).ask), closeStore())
}

func (t *tool) keyIssue() error {
	if (t.user == "") == (t.email == "") || t.user != "" && t.name != "" {
		return errors.New("key issue takes -user ID, or -email EMAIL and, if that is new, -name NAME")
	}
	request := strict.Encode(map[string]string{"user_id": t.user, "name": t.name, "email": t.email})
	return t.withStore(t.email != "", func(a ask) error {
		var issued map[string]string
		if err := a.into(&issued, "POST", "/keys", "", request); err != nil {
			return err
		}
		delete(issued, "base_url") // of no use here
		text := issued["key"]
		if t.json {
			text = string(strict.Encode(issued))
		}
		// The id comes first: if nobody reads stdout, printing ends the process (SIGPIPE).
		err := t.report(a, "issued", issued["id"], "; the secret is shown this once")
		return errors.Join(err, t.Print(text+"\n"))
	})
}

// report prints what was done to a key, and whose key it is.
func (t *tool) report(a ask, done, id, more string) error {
	var list struct{ Data []map[string]string }
	err := a.into(&list, "GET", "/keys", "", nil)
	for _, k := range list.Data {
		if k["id"] == id {
			t.Notice("%s %s of %s, %s (%s)%s", done, id, k["name"], k["email"], k["user_id"], more)
		}
	}
	return err
}

func (t *tool) keyList() error {
	return t.withStore(false, func(a ask) error {
		var list struct{ Data json.RawMessage }
		if err := a.into(&list, "GET", "/keys", "", nil); err != nil {
			return err
		}
		if t.json {
			return t.Print(string(list.Data) + "\n")
		}
		var keys []map[string]string // of which null is ""
		if err := json.Unmarshal(list.Data, &keys); err != nil {
			return err
		}
		var table bytes.Buffer
		tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "ID\tUSER\tNAME\tEMAIL\tHINT\tCREATED\tREVOKED")
		members := []string{"id", "user_id", "name", "email", "hint", "created_at", "revoked_at"}
		for _, key := range keys {
			var row []string
			for _, member := range members {
				cell := strings.Fields(key[member]) // of a name that may have line ends
				row = append(row, cmp.Or(strings.Join(cell, " "), "-"))
			}
			fmt.Fprintln(tw, strings.Join(row, "\t"))
		}
		return errors.Join(tw.Flush(), t.Print(command.Printable(table.String())))
	})
}

// keyRevoke revokes a key and reports whose it was.
func (t *tool) keyRevoke() error {
	if len(t.Args) != 1 || !strings.HasPrefix(t.Args[0], "key_") {
		return errors.New("key revoke takes one ID after its flags: key_…, as eventsd key list shows it")
	}
	id := t.Args[0]
	return t.withStore(false, func(a ask) error {
		if err := a(io.Discard, "DELETE", "/keys/{id}", id, nil); err != nil {
			return err
		}
		return t.report(a, "revoked", id, "")
	})
}

func (t *tool) apply() error {
	if len(t.Args) > 1 {
		return errors.New("apply takes one FILE after its flags, or - for standard input")
	}
	records, err := t.files.Records(slices.Concat(t.Args, []string{"-"})[0])
	if err != nil {
		return err
	}
	return t.withStore(true, func(a ask) error {
		var done struct{ Applied int }
		err := a.into(&done, "POST", "/records", "", records)
		if err == nil {
			t.Notice("applied %d records", done.Applied)
		}
		return err
	})
}

func (t *tool) dump() error {
	if t.salvage {
		return t.files.Salvage(t.data)
	}
	return t.withStore(false, func(a ask) error {
		return a(t.Stdout, "GET", "/records", "", nil)
	})
}
