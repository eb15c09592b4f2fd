package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
)

// result is the verdict on a mutant.
type result struct {
	id      int
	verdict string // killed, survived, unreached or gone
	where   string // the package and the test that killed it, and "late" if the test did not end in time
}

func (r result) String() string {
	return strings.TrimRight(fmt.Sprintf("%d\t%s\t%s", r.id, r.verdict, r.where), "\t") + "\n"
}

// results are the results of a run. Each is appended to a file at once.
type results struct {
	path string
	mu   sync.Mutex
	by   map[int]result
}

func openResults(path string, resume bool) (*results, error) {
	r := &results{path: path, by: map[int]result{}}
	if resume {
		before, err := readResults(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		maps.Copy(r.by, before)
	}
	return r, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), r.write())
}

func readResults(path string) (map[int]result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	by := map[int]result{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		w := append(strings.Split(lines.Text(), "\t"), "", "")
		id, err := strconv.Atoi(w[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		by[id] = result{id: id, verdict: w[1], where: w[2]}
	}
	return by, lines.Err()
}

func (r *results) has(id int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.by[id]
	return ok
}

func (r *results) note(res result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[res.id] = res
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(res.String())
	return errors.Join(err, f.Close())
}

// write writes all results in order.
func (r *results) write() error {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(r.by)) {
		b.WriteString(r.by[id].String())
	}
	return os.WriteFile(r.path, []byte(b.String()), 0o666)
}

// counts are the numbers of mutants by verdict.
type counts map[string]int

func (c counts) row(name string) string {
	all := c["killed"] + c["survived"] + c["unreached"]
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%.0f %%\t\n", name, all, c["killed"], c["survived"], c["unreached"],
		100*float64(c["killed"])/float64(max(all, 1)))
}

// report prints the mutants that no test kills, a table of the packages, and the share killed.
func (r *results) report(w io.Writer, mutants []mutant) {
	total, packages := counts{}, map[string]counts{}
	for _, m := range mutants {
		verdict, name := r.by[m.id].verdict, path.Dir(m.site.file)
		if packages[name] == nil {
			packages[name] = counts{}
		}
		packages[name][verdict]++
		total[verdict]++
		if verdict != "killed" {
			fmt.Fprintf(w, "%d %s: %s:%d:%d %s: %s\n", m.id, verdict, m.site.file, m.site.line, m.site.col, m.kind, m.text)
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "package\tmutants\tkilled\tsurvived\tunreached\tkilled\t\n")
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		fmt.Fprint(table, packages[name].row(name))
	}
	fmt.Fprint(table, total.row("total"))
	table.Flush()
}

// compareFiles prints mutants killed in one file of results and not in the other, and fails if there are any.
func compareFiles(w io.Writer, list string, files []string) error {
	if len(files) != 2 {
		return errors.New("-compare takes two files of results: OLD NEW")
	}
	before, err := readResults(files[0])
	if err != nil {
		return err
	}
	after, err := readResults(files[1])
	if err != nil {
		return err
	}
	entries, err := readList(list)
	if err != nil {
		return err
	}
	lost, won, without := 0, 0, 0
	for _, m := range entries {
		b, a := before[m.id], after[m.id]
		switch {
		case a.verdict == "" || a.verdict == "gone":
			without++
		case b.verdict == "killed" && a.verdict != "killed":
			lost++
			fmt.Fprintf(w, "%d was killed by %s, now %s: %s:%d:%d %s: %s\n", m.id, b.where, a.verdict, m.file, m.line, m.col,
				m.kind, m.text)
		case b.verdict != "killed" && a.verdict == "killed":
			won++
		}
	}
	fmt.Fprintf(w, "%d killed only before, %d killed only now; %d have no new result\n", lost, won, without)
	if lost > 0 {
		return fmt.Errorf("%d mutants that were killed are not any more", lost)
	}
	return nil
}
