package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
)

// ServerFlags are the flags of a subcommand that serves.
type ServerFlags struct {
	*Flags
	Verbose *bool // log every request
	addr    *string
	log     *string
}

// NewServerFlags returns the flags -addr, with a default, -log and -v. It is otherwise like
// [Program.NewFlags].
func (p *Program) NewServerFlags(subcommand, operands, addr string) *ServerFlags {
	flags := p.NewFlags(subcommand, operands)
	return &ServerFlags{
		Flags:   flags,
		Verbose: flags.Bool("v", false, "log every request"),
		addr:    flags.String("addr", addr, "`HOST:PORT` to listen on; port 0 is any free port"),
		log:     flags.OneOf("log", "`FORMAT` of the log on stderr: text or json", "text", "json"),
	}
}

// Logger returns a logger that writes to stderr.
func (f *ServerFlags) Logger() *slog.Logger {
	options := &slog.HandlerOptions{}
	if *f.Verbose {
		options.Level = slog.LevelDebug
	}
	if *f.log == "json" {
		return slog.New(slog.NewJSONHandler(f.program.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(f.program.Stderr, options))
}

// Listen listens on the address.
func (f *ServerFlags) Listen() (net.Listener, error) {
	addr := *f.addr
	if addr == "" { // for net.Listen, that is any port of all interfaces
		return nil, Usagef("-addr is empty: want HOST:PORT")
	}
	l, err := net.Listen("tcp", addr)
	if _, malformed := errors.AsType[*net.AddrError](err); malformed {
		return nil, Usagef("-addr: %w: want HOST:PORT", err)
	}
	if err != nil {
		return nil, fmt.Errorf("-addr: %w: want HOST:PORT of this machine, with a free port", err)
	}
	return l, nil
}

// BaseURL returns the URL of a server at an address. A wildcard is replaced by the local host.
func BaseURL(addr, local string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = local
	}
	return "http://" + net.JoinHostPort(host, port)
}
