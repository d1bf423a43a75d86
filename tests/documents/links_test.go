//go:build unix

package documents

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A link within the repository leads to an existing file and, after a #, to a heading or an anchor there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^():#\s]*)(?:#([^()\s]*))?\)`)
	for _, document := range documents(t, "*.md", "docs/*.md") {
		for _, match := range link.FindAllStringSubmatch(read(t, document), -1) {
			target, anchor := document, match[2]
			if match[1] != "" {
				target = path.Join(path.Dir(document), match[1])
			}
			if _, err := os.Stat("../../" + target); err != nil {
				t.Errorf("%s: link %s: got %v, want a file", document, match[0], err)
				continue
			}
			if anchor == "" {
				continue
			}
			if known := anchors(read(t, target)); !slices.Contains(known, anchor) {
				t.Errorf("%s: link %s: got the anchor %s, want one of %s", document, match[0], anchor, known)
			}
		}
	}
}

// anchors returns the anchors of a document: its headings, as GitHub spells them, and its <a> elements with
// an ID.
func anchors(document string) (list []string) {
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	punctuation := regexp.MustCompile(`[^\pL\pN _-]`)
	for _, match := range heading.FindAllStringSubmatch(document, -1) {
		text := punctuation.ReplaceAllString(strings.ToLower(match[1]), "")
		list = append(list, strings.ReplaceAll(text, " ", "-"))
	}
	for _, match := range regexp.MustCompile(`<a id="([^"]*)">`).FindAllStringSubmatch(document, -1) {
		list = append(list, match[1])
	}
	return list
}

func read(t *testing.T, document string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
