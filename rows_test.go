package berth_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	rowCode   = regexp.MustCompile(`\b(?:GA|LN|BO|BD|CS)-\d+\b`)
	rowLine   = regexp.MustCompile(`(?m)^\| ((?:GA|LN|BO|BD|CS)-\d+) \| \S`)
	invariant = regexp.MustCompile(`(?i)\binvariants? (\d+)`)
)

// TestRows: each row code in a test or a comment is explained in docs/dev/rows.md, exactly once.
func TestRows(t *testing.T) {
	page, err := os.ReadFile("docs/dev/rows.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, line := range rowLine.FindAllStringSubmatch(string(page), -1) {
		if told[line[1]] {
			t.Errorf("docs/dev/rows.md says twice what %s is", line[1])
		}
		told[line[1]] = true
	}
	named := 0
	for _, file := range filesWithRows(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range rowCode.FindAllString(string(text), -1) {
			named++
			if !told[code] {
				t.Errorf("%s names %s, which is no row of docs/dev/rows.md", file, code)
			}
		}
		for _, found := range invariant.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(string(page), fmt.Sprintf("\n| %s | ", found[1])) {
				t.Errorf("%s names invariant %s, which is no row of docs/dev/rows.md", file, found[1])
			}
		}
	}
	if named == 0 {
		t.Error("no file names a row: the walk finds nothing")
	}
}

// rowsOfPage is the number of rows in docs/dev/rows.md, without the single cases.
const rowsOfPage = 88

// TestRowsTested: a test or a script names each row. With -v it lists which.
func TestRowsTested(t *testing.T) {
	page, err := os.ReadFile("docs/dev/rows.md")
	if err != nil {
		t.Fatal(err)
	}
	by := map[string][]string{}
	for _, file := range filesWithRows(t) {
		if !strings.HasSuffix(file, "_test.go") && filepath.Ext(file) != ".txtar" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range rowCode.FindAllString(string(text), -1) {
			if !slices.Contains(by[code], file) {
				by[code] = append(by[code], file)
			}
		}
	}
	rows := rowLine.FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		if len(by[row[1]]) == 0 {
			t.Errorf("no test names %s", row[1])
		}
		t.Logf("%s: %s", row[1], strings.Join(by[row[1]], " "))
	}
	if len(rows) != rowsOfPage {
		t.Errorf("docs/dev/rows.md has %d rows, not %d", len(rows), rowsOfPage)
	}
}

// filesWithRows are the files of code, scripts and pages that name rows.
func filesWithRows(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (file == "build" || file == ".git") {
			return fs.SkipDir
		}
		switch filepath.Ext(file) {
		case ".go", ".txtar", ".md":
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
