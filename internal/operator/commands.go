package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"example.com/events/internal/command"
)

// Files is what the subcommands need of the program to work on a data file.
type Files struct {
	// Open opens the store of a data file, which no server may have open, to be
	// closed after use. It makes a new file only where create is set.
	Open func(path string, create bool) (store Store, closeStore func() error, err error)
	// Records reads an array of records from a file, and refuses a data file.
	Records func(path string) ([]byte, error)
	// Check reads a data file, changes nothing, and returns lines that say what is in it.
	Check func(path string) (report string, err error)
	// Salvage calls record with every record of a damaged data file that can still
	// be read, and skipped with a description of each part that cannot.
	Salvage func(path string, record func(text string) error, skipped func(part string)) error
}

// tool is the subcommands of one run of a program.
type tool struct {
	*command.Program
	files Files

	data, name, email, user string
	json, salvage, verbose  bool
}

// Commands are the operator's subcommands. Those that work on a store use the
// running server through its socket or, where none runs, the data file itself.
func Commands(p *command.Program, files Files) []command.Command {
	t := &tool{Program: p, files: files}
	data := func(fs *flag.FlagSet) {
		fs.StringVar(&t.data, "data", "events.json", "the data `FILE` of the server")
	}
	store := func(fs *flag.FlagSet) {
		data(fs)
		fs.BoolVar(&t.verbose, "v", false, "say whether the running server or the data file is used")
	}
	return []command.Command{{
		Name: "key issue", Run: t.keyIssue,
		Summary: "make an API key for a user and print it: it is shown this once",
		Flags: func(fs *flag.FlagSet) {
			store(fs)
			fs.StringVar(&t.name, "name", "", "`NAME` of the user where the email is new")
			fs.StringVar(&t.email, "email", "", "`EMAIL` of the user")
			fs.StringVar(&t.user, "user", "", "`ID` of an existing user, in place of an email")
			fs.BoolVar(&t.json, "json", false, "print the ids of the key and its user, too, as JSON")
		},
	}, {
		Name: "key list", Run: t.keyList,
		Summary: "list the keys, without their secrets",
		Flags: func(fs *flag.FlagSet) {
			store(fs)
			fs.BoolVar(&t.json, "json", false, "print JSON")
		},
	}, {
		Name: "key revoke", Args: "ID", Run: t.keyRevoke, Flags: store,
		Summary: "end a key for good",
	}, {
		Name: "apply", Args: "[FILE|-]", Run: t.apply, Flags: store,
		Summary: "put an array of records into the store, all or none; see docs/records.md",
	}, {
		Name: "dump", Run: t.dump,
		Summary: "print the store as an array of records, which is a seed",
		Flags: func(fs *flag.FlagSet) {
			store(fs)
			fs.BoolVar(&t.salvage, "salvage", false, "print what can still be read of a damaged data file")
		},
	}, {
		Name: "check", Run: t.check, Flags: data,
		Summary: "read the data file, say what is in it and change nothing",
	}}
}

// withStore runs do on the store of the running server or of the data file. It
// makes a new data file only where create is set.
func (t *tool) withStore(create bool, do func(Store) error) error {
	socket := command.SocketPath(t.data)
	closeStore := func() error { return nil }
	store, err := Dial(socket)
	used := "the running server at " + socket
	if err != nil {
		used = "the data file " + t.data
		if store, closeStore, err = t.files.Open(t.data, create); err != nil {
			return err
		}
	}
	if t.verbose {
		t.Notice("using " + used)
	}
	err = errors.Join(do(store), closeStore())
	if _, failed := errors.AsType[*ServerError](err); failed {
		return command.Failed(err)
	}
	return err
}

// print prints on stdout. What cannot be printed has failed.
func (t *tool) print(text []byte) error {
	_, err := t.Stdout.Write(text)
	return command.Failed(err)
}

func (t *tool) keyIssue() error {
	if (t.user == "") == (t.email == "") || t.user != "" && t.name != "" {
		return errors.New("key issue takes -user ID, or -email EMAIL and, where that is new, -name NAME")
	}
	return t.withStore(t.email != "", func(store Store) error {
		request, err := json.Marshal(map[string]string{"user_id": t.user, "name": t.name, "email": t.email})
		if err != nil {
			return err
		}
		answer, err := store.IssueKeyJSON(request)
		if err != nil && t.email != "" && t.name == "" {
			return fmt.Errorf("%w; a new user takes -name NAME", err)
		}
		if err != nil {
			return err
		}
		var issued struct {
			ID   string `json:"id"`
			Key  string `json:"key"`
			User string `json:"user"`
		}
		if err := json.Unmarshal(answer, &issued); err != nil {
			return err
		}
		t.Notice("issued " + issued.ID + " for " + issued.User + "; the secret is shown this once")
		if !t.json {
			return t.print([]byte(issued.Key + "\n"))
		}
		line, err := json.Marshal(issued)
		return errors.Join(err, t.print(append(line, '\n')))
	})
}

// key is a key as [Store.KeysJSON] has it.
type key struct {
	ID          string
	UserID      string `json:"user_id"`
	Name, Email string // of the user
	Hint        *string
	CreatedAt   time.Time  `json:"created_at"`
	RevokedAt   *time.Time `json:"revoked_at"`
}

// withKeys runs do on the store and its keys.
func (t *tool) withKeys(do func(store Store, raw []byte, keys []key) error) error {
	return t.withStore(false, func(store Store) error {
		raw, err := store.KeysJSON()
		if err != nil {
			return err
		}
		var keys []key
		if err := json.Unmarshal(raw, &keys); err != nil {
			return err
		}
		return do(store, raw, keys)
	})
}

func (t *tool) keyList() error {
	return t.withKeys(func(_ Store, raw []byte, keys []key) error {
		if t.json {
			return t.print(append(raw, '\n'))
		}
		var table bytes.Buffer
		tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "ID\tUSER\tNAME\tEMAIL\tHINT\tCREATED\tREVOKED")
		for _, k := range keys {
			hint, revoked := "-", "-"
			if k.Hint != nil {
				hint = "…" + *k.Hint
			}
			if k.RevokedAt != nil {
				revoked = k.RevokedAt.Format(time.RFC3339)
			}
			row := []string{k.ID, k.UserID, k.Name, k.Email, hint, k.CreatedAt.Format(time.RFC3339), revoked}
			for i, cell := range row {
				row[i] = command.Printable(cell)
			}
			fmt.Fprintln(tw, strings.Join(row, "\t"))
		}
		return errors.Join(tw.Flush(), t.print(table.Bytes()))
	})
}

// keyRevoke revokes a key and says whose it was.
func (t *tool) keyRevoke() error {
	if len(t.Args) != 1 || !strings.HasPrefix(t.Args[0], "key_") {
		return errors.New("key revoke takes one ID after its flags: key_…, as eventsd key list shows it")
	}
	return t.withKeys(func(store Store, _ []byte, keys []key) error {
		err := store.RevokeKey(t.Args[0])
		i := slices.IndexFunc(keys, func(k key) bool { return k.ID == t.Args[0] })
		if err != nil || i < 0 { // the key was issued just now
			return err
		}
		done := "revoked"
		if keys[i].RevokedAt != nil {
			done = "had been revoked before:"
		}
		k := keys[i]
		t.Notice(fmt.Sprintf("%s %s of %s, %s (%s)", done, k.ID, k.Name, k.Email, k.UserID))
		return nil
	})
}

func (t *tool) apply() error {
	if len(t.Args) > 1 {
		return errors.New("apply takes one FILE after its flags, or - for standard input")
	}
	var records []byte
	var err error
	if len(t.Args) == 0 || t.Args[0] == "-" {
		records, err = io.ReadAll(t.Stdin)
	} else {
		records, err = t.files.Records(t.Args[0])
	}
	if err != nil {
		return err
	}
	return t.withStore(true, func(store Store) error {
		err := store.ApplyJSON(records)
		if err == nil {
			t.Notice(fmt.Sprintf("applied %d records", count(records)))
		}
		return err
	})
}

func (t *tool) dump() error {
	if t.salvage {
		return t.dumpDamaged()
	}
	return t.withStore(false, func(store Store) error {
		records, err := store.RecordsJSON()
		if err != nil {
			return err
		}
		return t.print(records)
	})
}

// dumpDamaged prints the records that can still be read, and on stderr what was
// skipped. It prints nothing where there is no record: an empty array would look
// like a seed.
func (t *tool) dumpDamaged() error {
	between, skipped := "[\n", false
	err := t.files.Salvage(t.data, func(record string) error {
		err := t.print([]byte(between + record))
		between = ",\n"
		return err
	}, func(part string) {
		skipped = true
		t.Notice("skipped " + part)
	})
	if between == ",\n" {
		err = errors.Join(err, t.print([]byte("\n]\n")))
	}
	if skipped {
		t.Notice("what was printed goes into a new data file with -seed FILE; " +
			"where it names a user or an event that was skipped, put that back by hand first")
	}
	return err
}

func (t *tool) check() error {
	report, err := t.files.Check(t.data)
	if err != nil {
		return err
	}
	return t.print([]byte(command.Plain(report)))
}
