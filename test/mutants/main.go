// Command mutants measures how many small faults the unit tests find. It promises that a fault counts as found only
// if a test fails twice with it and passes without it, and that two runs of one list can be compared.
//
// A run loads the tree (tree.go) and finds the sites where a line can be changed (site.go). It takes the mutants of the
// list, or chooses a new list by a seed (list.go), and builds each test binary once with all of them, each behind a
// switch (overlay.go, switch.txt). The baseline runs the tests and records which mutants each one reaches (suite.go,
// baseline.go). Then each mutant is switched on for the tests that reach it (judge.go), and the results are written
// (result.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags of a run.
type options struct {
	dir      string   // of the tree
	packages []string // in the syntax of go list
	list     string   // file of the mutants; chosen and written if it does not exist
	seed     uint64   // for the choice, and for rapid
	n        int      // mutants to choose
	out      string   // file of the results
	resume   bool     // keep the results that the file has
	work     string   // directory for built files; empty: a new one, removed at the end
	short    bool     // run the tests with -short
	skip     string   // tests to leave out, in the syntax of -test.skip
	workers  int      // test processes at a time
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", ".", "the `tree` to change and test: the root of a module")
	packages := flag.String("packages", "./...", "the packages to mutate and to test, with spaces between them")
	flag.StringVar(&o.list, "list", "test/mutants/list.txt",
		"the `file` of the mutants; a new list is chosen if it does not exist")
	flag.Uint64Var(&o.seed, "seed", 1, "the seed of the choice, and of rapid")
	flag.IntVar(&o.n, "n", 300, "how many mutants a new list gets")
	flag.StringVar(&o.out, "out", "build/mutants.txt", "the `file` of the results")
	flag.BoolVar(&o.resume, "resume", false, "keep the results that the file has, and run the other mutants")
	flag.StringVar(&o.work, "work", "", "keep test binaries and the baseline in this `directory`, for the next run")
	flag.BoolVar(&o.short, "short", false, "run the tests with -short")
	flag.StringVar(&o.skip, "skip", "", "leave out the tests that match this `expression`, as -test.skip does")
	flag.IntVar(&o.workers, "p", 2, "how many test processes run at a time")
	compare := flag.Bool("compare", false, "compare two files of results, OLD NEW: print what was killed and survives now")
	flag.Parse()
	o.packages = strings.Fields(*packages)

	var err error
	if *compare {
		err = compareFiles(os.Stdout, o.list, flag.Args())
	} else {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err = bound(); err == nil {
			err = measure(ctx, o)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// measure does a whole run.
func measure(ctx context.Context, o options) error {
	start := time.Now()
	tree, err := load(ctx, o.dir, o.packages)
	if err != nil {
		return err
	}
	mutants, gone, err := mutantsOf(tree, o)
	if err != nil {
		return err
	}
	for _, m := range gone {
		fmt.Printf("%d is gone: %s %s: %s\n", m.id, m.file, m.fn, m.text)
	}
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "mutants"); err != nil {
			return err
		}
		defer os.RemoveAll(o.work)
	}
	if o.work, err = filepath.Abs(o.work); err != nil {
		return err
	}
	s, err := build(ctx, tree, mutants, o)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d test binaries have %d mutants\n", since(start), len(s.binaries), len(mutants))
	if err := s.baseline(ctx); err != nil {
		return err
	}
	fmt.Printf("%s: the baseline is done\n", since(start))
	results, err := openResults(o.out, o.resume)
	if err != nil {
		return err
	}
	for _, m := range gone {
		results.by[m.id] = result{id: m.id, verdict: "gone", where: m.file}
	}
	err = s.judgeAll(ctx, mutants, results)
	if err := errors.Join(err, results.write()); err != nil {
		return err
	}
	results.report(os.Stdout, mutants)
	fmt.Printf("%s in all\n", since(start))
	return nil
}

// bound limits the memory and the files of child processes. A mutant may loop forever.
func bound() error {
	const most = 4 << 30
	limit := syscall.Rlimit{Cur: most, Max: most}
	return errors.Join(syscall.Setrlimit(syscall.RLIMIT_DATA, &limit), syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
}

func since(start time.Time) string {
	return time.Since(start).Round(time.Second).String()
}

// mutantsOf returns the mutants of the list that the tree still has, and those that are gone. Without a list it
// chooses one.
func mutantsOf(t *tree, o options) (found, gone []mutant, err error) {
	sites := t.sites()
	entries, err := readList(o.list)
	if errors.Is(err, os.ErrNotExist) {
		entries = choose(t, sites, o.seed, o.n)
		fmt.Printf("choosing %d of %d sites for %s\n", len(entries), len(sites), o.list)
		err = writeList(o.list, entries)
	}
	if err != nil {
		return nil, nil, err
	}
	found, gone = find(t, entries, sites)
	return found, gone, nil
}
