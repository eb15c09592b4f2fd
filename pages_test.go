package berth_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`^#{1,6} (.*)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	// a file of this tree, as sentences name one: driver/options.go, docs/dev/rows.md, edit.go
	fileNamed = regexp.MustCompile("(?:^|[\\s(`\"'])((?:[a-zA-Z0-9_.-]+/)*[a-zA-Z0-9_-]+\\.(?:go|md|txtar|yaml|yml|service|socket))\\b")
)

// pages are README.md, CONTRIBUTING.md and all of docs, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	forDevelopers, err := filepath.Glob("docs/dev/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(found, forDevelopers, []string{"README.md", "CONTRIBUTING.md"}) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = string(text)
	}
	return all
}

// prose is a page without its code blocks, whose brackets and number signs mean something else.
func prose(page string) string {
	var kept strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inside = !inside
			continue
		}
		if !inside {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// anchors are the places in a page that a link can lead to, named as on the web: the heading in small letters,
// without punctuation, with hyphens for spaces. Repeated ones are numbered.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(prose(page)) {
		found := heading.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			continue
		}
		anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")
		for name, n := anchor, 1; ; n++ {
			if !all[name] {
				all[name] = true
				break
			}
			name = fmt.Sprintf("%s-%d", anchor, n)
		}
	}
	return all
}

// TestLinks: each link of a page to a file of this tree leads to an existing file and heading.
func TestLinks(t *testing.T) {
	all, checked := pages(t), 0
	for page, text := range all {
		for _, found := range pageLink.FindAllStringSubmatch(prose(text), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(found[1], "#")
			target := path.Join(path.Dir(page), file)
			if file == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, found[1])
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s: %s has no heading #%s", page, target, anchor)
			}
		}
	}
	if checked < 100 {
		t.Errorf("the pages have %d links: the test does not see them", checked)
	}
}

// TestPagesAreFound: docs/README.md leads to every page of docs.
func TestPagesAreFound(t *testing.T) {
	all := pages(t)
	led := map[string]bool{"docs/README.md": true}
	for _, found := range pageLink.FindAllStringSubmatch(all["docs/README.md"], -1) {
		led[path.Join("docs", found[1])] = true
	}
	for page := range all {
		if strings.HasPrefix(page, "docs/") && !led[page] {
			t.Errorf("%s is in no list of docs/README.md", page)
		}
	}
}

// TestFilesNamed: a file named by a page, a comment, a script or the Makefile exists. Part of the path is enough:
// edit/dynamic.go is internal/ipam/edit/dynamic.go.
func TestFilesNamed(t *testing.T) {
	tree, texts := treeFiles(t)
	checked := 0
	for file, text := range texts {
		for _, found := range fileNamed.FindAllStringSubmatch(text, -1) {
			name := strings.TrimPrefix(found[1], "../")
			if foreignFiles[name] || !strings.Contains(name, "/") && !strings.HasSuffix(name, ".go") {
				continue
			}
			checked++
			if !tree[name] {
				t.Errorf("%s names %s, and there is no such file", file, found[1])
			}
		}
	}
	if checked < 200 {
		t.Errorf("%d files are named: the test does not see them", checked)
	}
}

// foreignFiles are file names in sentences that are not of this tree.
var foreignFiles = map[string]bool{
	"meta.go": true, "bucket.go": true, // bbolt's
	"l2disco/unsol_arp_linux.go":           true, // moby's
	"testdata/wire/ENGINE/SITUATION.txtar": true, // stands for any of these
}

// treeFiles are the names of all files, by every ending of their paths, and the texts of pages, code comments,
// scripts and the Makefile.
func treeFiles(t *testing.T) (names map[string]bool, texts map[string]string) {
	t.Helper()
	names, texts = map[string]bool{}, map[string]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if file == "build" || file == "bin" || file == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		for end := file; ; {
			names[end] = true
			_, rest, more := strings.Cut(end, "/")
			if !more {
				break
			}
			end = rest
		}
		ext := filepath.Ext(file)
		if ext != ".md" && ext != ".go" && ext != ".yml" && filepath.Dir(file) != "scripts" && file != "Makefile" {
			return nil
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts[file] = string(b)
		if ext == ".go" {
			texts[file] = comments(string(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, texts
}

// comments are the lines of code that are only a comment.
func comments(code string) string {
	var kept strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "//") {
			kept.WriteString(line + "\n")
		}
	}
	return kept.String()
}
