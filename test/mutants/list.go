package main

import (
	"bufio"
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mutant is a line of the list.
type mutant struct {
	id int
	place
	line, col int   // when it was chosen
	site      *site // in this tree
}

// choose draws n sites. Each package gets one, and the rest are in proportion to lines. A package takes its kinds
// of sites in turn, and never two of one line.
func choose(t *tree, sites []*site, seed uint64, n int) []mutant {
	left, lines := map[*pkg][]*site{}, map[*pkg]int{}
	for _, s := range sites {
		left[s.pkg] = append(left[s.pkg], s)
	}
	var packages []*pkg
	for _, p := range t.packages {
		if len(left[p]) > 0 {
			packages = append(packages, p)
			lines[p] = p.lines
			left[p] = inTurn(left[p], seed)
		}
	}
	taken := map[*pkg]int{}
	var all []mutant
	for len(all) < n && len(packages) > 0 {
		p := slices.MaxFunc(packages, func(a, b *pkg) int {
			if first := cmp.Compare(min(taken[b], 1), min(taken[a], 1)); first != 0 {
				return first
			}
			return cmp.Compare(lines[a]*(2*taken[b]+1), lines[b]*(2*taken[a]+1)) // Sainte-Laguë
		})
		s := left[p][0]
		all = append(all, mutant{place: s.place, line: s.line, col: s.col})
		taken[p]++
		if left[p] = left[p][1:]; len(left[p]) == 0 {
			packages = slices.DeleteFunc(packages, func(o *pkg) bool { return o == p })
		}
	}
	slices.SortFunc(all, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
	for i := range all {
		all[i].id = i + 1
	}
	return all
}

// inTurn shuffles the sites of a package and takes one of each kind in turn.
func inTurn(sites []*site, seed uint64) []*site {
	h := fnv.New64a()
	h.Write([]byte(sites[0].pkg.rel))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	r.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	type turn struct {
		s     *site
		round int
	}
	var turns []turn
	rounds, lines := map[string]int{}, map[string]bool{}
	for _, s := range sites {
		if line := fmt.Sprint(s.file, s.line); !lines[line] {
			lines[line] = true
			turns = append(turns, turn{s, rounds[s.kind]})
			rounds[s.kind]++
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.round, b.round) })
	sites = sites[:0]
	for _, t := range turns {
		sites = append(sites, t.s)
	}
	return sites
}

const listHead = "# id\tfile\tline:column\tkind\tfunction\tn-th of its kind\tline\n"

func writeList(path string, all []mutant) error {
	var b strings.Builder
	b.WriteString(listHead)
	for _, m := range all {
		fmt.Fprintf(&b, "%d\t%s\t%d:%d\t%s\t%s\t%d\t%s\n", m.id, m.file, m.line, m.col, m.kind, m.fn, m.nth, m.text)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func readList(path string) (all []mutant, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		w := strings.SplitN(lines.Text(), "\t", 7)
		if len(w) < 7 {
			return nil, fmt.Errorf("%s: a line has %d fields, not 7: %s", path, len(w), lines.Text())
		}
		m := mutant{place: place{file: w[1], kind: w[3], fn: w[4], text: w[6]}}
		if _, err := fmt.Sscanf(w[2], "%d:%d", &m.line, &m.col); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", path, err, lines.Text())
		}
		for field, into := range map[string]*int{w[0]: &m.id, w[5]: &m.nth} {
			if *into, err = strconv.Atoi(field); err != nil {
				return nil, fmt.Errorf("%s: %w: %s", path, err, lines.Text())
			}
		}
		all = append(all, m)
	}
	return all, lines.Err()
}

// find gives each mutant its site: the same line of the same function, or else the only such line in another file
// or function. It leaves out packages that the run does not cover.
func find(t *tree, entries []mutant, sites []*site) (found, gone []mutant) {
	like := map[place][]*site{}
	for _, s := range sites {
		for _, p := range s.loose() {
			like[p] = append(like[p], s)
		}
	}
	for _, m := range entries {
		for _, p := range m.loose() {
			if m.site == nil && len(like[p]) == 1 {
				m.site = like[p][0]
			}
		}
		switch {
		case m.site != nil:
			found = append(found, m)
		case t.whole:
			gone = append(gone, m)
		}
	}
	return found, gone
}

// loose is the place itself, the place in any file, and the place in any function of its file.
func (p place) loose() [3]place {
	file, fn := p, p
	file.file, fn.fn = "", ""
	return [3]place{p, file, fn}
}
