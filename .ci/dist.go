// Command dist makes what a release page needs: for each system an archive with
// the binary and the README, and SHA256SUMS, which `sha256sum -c` reads.
//
//	.ci/dist VERSION [FOLDER]     such as .ci/dist v1.2.3; the folder is dist if not given
//
// The same source, version and Go release make the same bytes on every run and on
// every machine: the binaries hold no path and no time, and the files in the
// archives have a fixed time and owner.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

var (
	systems       = []string{"darwin", "linux", "windows"}
	architectures = []string{"amd64", "arm64"}

	// modified is the time of every file in the archives. The time of the build
	// would make them different on each run.
	modified = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	isVersion := regexp.MustCompile(`^v\d+\.\d+\.\d+[0-9A-Za-z.+-]*$`).MatchString
	if len(args) < 1 || len(args) > 2 || !isVersion(args[0]) {
		return fmt.Errorf("give a version such as v1.2.3, and a folder if it is not to be dist")
	}
	version, folder := args[0], "dist"
	if len(args) == 2 {
		folder = args[1]
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, system := range systems {
		for _, arch := range architectures {
			name := fmt.Sprintf("eventsd_%s_%s_%s", version, system, arch)
			binary, err := build(system, arch, version)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			files := []file{{name + "/README.md", 0o644, readme}, {name + "/eventsd", 0o755, binary}}
			var archive []byte
			if system == "windows" {
				files[1].name += ".exe"
				archive, err = zipped(files)
				name += ".zip"
			} else {
				archive, err = tarred(files)
				name += ".tar.gz"
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), archive, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(archive), name)
		}
	}
	fmt.Print(sums.String())
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), sums.Bytes(), 0o644)
}

// build returns the binary for a system.
func build(system, arch, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "eventsd")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -X example.com/events.version="+version, "-o", out, "./cmd/eventsd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

type file struct {
	name string
	mode os.FileMode
	data []byte
}

func tarred(files []file) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: modified}
		if err := archive.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func zipped(files []file) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified}
		h.SetMode(f.mode)
		w, err := archive.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
