package apitest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// OpenFiles returns this process's open files whose names begin with one of the prefixes. A socket is named
// "socket:[NUMBER]". It returns nothing on systems without /proc.
func OpenFiles(prefixes ...string) (names []string) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		name, _ := os.Readlink(link) // fails if it was just closed
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
