package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// unit is the smallest part of a package's tests that runs alone: all tests if they are quick, or else one test,
// or one part of a long test.
type unit struct {
	Test  string `json:",omitempty"` // empty: all
	Part  string `json:",omitempty"`
	Took  time.Duration
	Reach []int // the mutants
}

const (
	quick   = 5 * time.Second  // slower tests are split
	longest = 20 * time.Minute // limit of a test in the baseline
)

// kept is the stored baseline of a package.
type kept struct {
	Binary [sha256.Size]byte
	Skip   string
	Short  bool
	Units  []*unit
}

// baseline runs all tests without a mutant, and records which mutants each unit reaches.
func (s *suite) baseline(ctx context.Context) error {
	return each(s.workers, s.binaries, func(b *binary) error {
		text, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		now := kept{Binary: sha256.Sum256(text), Skip: s.skip, Short: s.short}
		path := filepath.Join(s.work, "baseline", strings.ReplaceAll(b.pkg.rel, "/", "-")+".json")
		var before kept
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &before) == nil &&
			before.Binary == now.Binary && before.Skip == now.Skip && before.Short == now.Short {
			b.units = before.Units
			return nil
		}
		if now.Units, err = s.unitsOf(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", b.pkg.rel, err)
		}
		b.units = now.Units
		if text, err = json.Marshal(now); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o666)
	})
}

// unitsOf makes one unit of a package's tests if they are quick and pass, and otherwise several.
func (s *suite) unitsOf(ctx context.Context, b *binary) ([]*unit, error) {
	all, o, err := s.reach(ctx, b, unit{}, quick)
	if err != nil || !o.failed {
		return []*unit{all}, err
	}
	listed, err := s.start(ctx, b, "", longest, "-test.list=^(Test|Fuzz|Example)")
	if err != nil {
		return nil, err
	}
	var units []*unit
	for _, test := range regexp.MustCompile(`(?m)^(Test|Fuzz|Example)\w*$`).FindAllString(listed.output, -1) {
		u, o, err := s.reach(ctx, b, unit{Test: test}, longest)
		if err == nil && o.failed {
			u, o, err = s.reach(ctx, b, unit{Test: test}, longest)
		}
		switch {
		case err != nil:
			return nil, err
		case o.failed:
			fmt.Printf("%s %s fails without a mutant: it is left out\n%s", b.pkg.rel, test, tail(o.output))
			continue
		}
		parts, err := s.parts(ctx, b, u, o.output)
		if err != nil {
			return nil, err
		}
		units = append(units, parts...)
	}
	return units, nil
}

// parts splits a long test if each part passes alone.
func (s *suite) parts(ctx context.Context, b *binary, whole *unit, output string) ([]*unit, error) {
	run := regexp.MustCompile(`(?m)^=== RUN +`+whole.Test+`/([^/\s]+)$`).FindAllStringSubmatch(output, -1)
	if whole.Took <= quick || len(run) < 2 {
		return []*unit{whole}, nil
	}
	var parts []*unit
	for _, found := range run {
		u, o, err := s.reach(ctx, b, unit{Test: whole.Test, Part: found[1]}, longest)
		if err != nil {
			return nil, err
		}
		if o.failed || !strings.Contains(o.output, "=== RUN   "+whole.Test+"/"+found[1]+"\n") {
			return []*unit{whole}, nil
		}
		parts = append(parts, u)
	}
	return parts, nil
}

// reach runs a unit, and records its time and the mutants that it reaches.
func (s *suite) reach(ctx context.Context, b *binary, u unit, limit time.Duration) (*unit, outcome, error) {
	dir, err := os.MkdirTemp(s.work, "r")
	if err != nil {
		return nil, outcome{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "reached")
	o, err := s.run(ctx, b, pattern([]*unit{&u}), file, limit)
	if err != nil {
		return nil, o, err
	}
	u.Took = o.took
	text, _ := os.ReadFile(file) // missing if nothing was reached
	for line := range bytes.Lines(text) {
		if id, err := strconv.Atoi(strings.TrimSpace(string(line))); err == nil {
			u.Reach = append(u.Reach, id)
		}
	}
	slices.Sort(u.Reach)
	u.Reach = slices.Compact(u.Reach)
	return &u, o, nil
}

// pattern is the -test.run flag for units: tests, or parts of one test.
func pattern(units []*unit) string {
	if units[0].Test == "" {
		return ""
	}
	var names []string
	for _, u := range units {
		if u.Part != "" {
			names = append(names, regexp.QuoteMeta(u.Part))
		} else {
			names = append(names, u.Test)
		}
	}
	joined := "^(" + strings.Join(names, "|") + ")$"
	if units[0].Part != "" {
		return "^" + units[0].Test + "$/" + joined
	}
	return joined
}

// tail is the end of a test's output.
func tail(output string) string {
	lines := strings.SplitAfter(output, "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "")
}

// each calls do for each item of a list, some at a time, until one fails.
func each[T any](workers int, all []T, do func(T) error) error {
	var (
		mu     sync.Mutex
		failed error
		wait   sync.WaitGroup
	)
	next := func() (item T, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed != nil || len(all) == 0 {
			return item, false
		}
		item, all = all[0], all[1:]
		return item, true
	}
	for range workers {
		wait.Go(func() {
			for item, ok := next(); ok; item, ok = next() {
				if err := do(item); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return failed
}
