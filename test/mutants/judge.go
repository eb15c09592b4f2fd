package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// group is a set of units that run in one process: tests, or parts of one test.
type group struct {
	b     *binary
	units []*unit
	took  time.Duration
}

// controlled is how long a pass without a mutant stays valid.
const controlled = 10 * time.Minute

// judgeAll decides for each mutant whether a test kills it.
func (s *suite) judgeAll(ctx context.Context, mutants []mutant, results *results) error {
	todo := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return results.has(m.id) })
	return each(s.workers, todo, func(m mutant) error {
		start := time.Now()
		r, err := s.judge(ctx, m)
		if err != nil {
			return err
		}
		fmt.Printf("%4d %-9s %5.1fs  %s:%d %s  %s\n", r.id, r.verdict, time.Since(start).Seconds(), m.site.file, m.site.line,
			m.kind, r.where)
		return results.note(r)
	})
}

func (s *suite) judge(ctx context.Context, m mutant) (result, error) {
	groups := s.groupsFor(m)
	if len(groups) == 0 {
		return result{id: m.id, verdict: "unreached"}, nil
	}
	for _, g := range groups {
		where, err := s.kills(ctx, g, m.id)
		if err != nil {
			return result{}, err
		}
		if where != "" {
			return result{id: m.id, verdict: "killed", where: where}, nil
		}
	}
	return result{id: m.id, verdict: "survived"}, nil
}

// groupsFor are the groups of units that reach a mutant: first those of its own package, then the cheapest.
func (s *suite) groupsFor(m mutant) (all []*group) {
	for _, b := range s.binaries {
		units := slices.DeleteFunc(slices.Clone(b.units), func(u *unit) bool {
			_, reached := slices.BinarySearch(u.Reach, m.id)
			return !reached
		})
		slices.SortStableFunc(units, func(a, b *unit) int { return cmp.Compare(a.Took, b.Took) })
		open := map[string]*group{} // by the test that the units belong to
		for _, u := range units {
			of := ""
			if u.Part != "" {
				of = u.Test
			}
			g := open[of]
			if g == nil || g.took+u.Took > quick {
				g = &group{b: b}
				open[of] = g
				all = append(all, g)
			}
			g.units = append(g.units, u)
			g.took += u.Took
		}
	}
	own := func(g *group) int {
		if g.b.pkg == m.site.pkg {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(own(a), own(b)), cmp.Compare(a.took, b.took))
	})
	return all
}

// kills returns the test that finds a mutant. It must fail twice with the mutant and pass without it, alone or
// with the others of its group: on a busy machine a test may fail by itself.
func (s *suite) kills(ctx context.Context, g *group, id int) (string, error) {
	limit := 3*g.took + 30*time.Second
	all := pattern(g.units)
	first, err := s.run(ctx, g.b, all, strconv.Itoa(id), limit)
	if err != nil || !first.failed {
		return "", err
	}
	tries := []string{all}
	if first.test != "" && g.units[0].Part == "" {
		tries = []string{"^" + first.test + "$", all}
	}
	for _, tests := range slices.Compact(tries) {
		second, err := s.run(ctx, g.b, tests, strconv.Itoa(id), limit)
		if err != nil {
			return "", err
		}
		if !second.failed {
			continue
		}
		passes, err := s.passes(ctx, g.b, tests, limit)
		if err != nil {
			return "", err
		}
		if passes {
			where := g.b.pkg.rel + " " + cmp.Or(first.part, first.test, all, "exit")
			if first.late && second.late {
				where += " late"
			}
			return where, nil
		}
	}
	fmt.Printf("     %s %s failed by itself, not by mutant %d\n", g.b.pkg.rel, first.test, id)
	return "", nil
}

// passes reports whether tests pass without a mutant.
func (s *suite) passes(ctx context.Context, b *binary, tests string, limit time.Duration) (bool, error) {
	key := b.pkg.rel + " " + tests
	s.mu.Lock()
	last, ok := s.passed[key]
	s.mu.Unlock()
	if ok && time.Since(last) < controlled {
		return true, nil
	}
	o, err := s.run(ctx, b, tests, "0", limit)
	if err == nil && !o.failed {
		s.mu.Lock()
		s.passed[key] = time.Now()
		s.mu.Unlock()
	}
	return !o.failed, err
}
