// Command bench measures what Berth promises about speed and size, each figure beside its yardstick in the same run, and
// writes docs/benchmarks.md. Absolute figures depend on the machine and on what else it does; the ratios travel.
//
// Each measurement is a function of a file of its own that returns rows; main runs them one after the other, on an
// otherwise idle machine, and prints them as they come.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// row is one line of the report.
type row struct {
	what     string
	bound    string
	measured string
	verdict  string
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "**missed**"
}

// measurement is one group of rows.
type measurement struct {
	name string
	run  func(env) ([]row, error)
}

// env is where a measurement works.
type env struct {
	dir    string        // empty, removed afterwards
	memory string        // the same on a tmpfs
	berth  string        // the binary
	round  time.Duration // how long one side of a comparison runs each time
}

func main() {
	only := flag.String("only", "", "run the measurements whose name matches this expression")
	out := flag.String("o", "docs/benchmarks.md", "where to write the report; empty: only print")
	round := flag.Duration("round", time.Second, "length of each round of a comparison")
	flag.Parse()
	if err := run(*only, *out, *round); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(only, out string, round time.Duration) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "berth-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	memory, err := os.MkdirTemp("/dev/shm", "berth-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(memory)
	berth := filepath.Join(dir, "berth")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", berth, "./cmd/berth")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building berth: %w\n%s", err, text)
	}
	var all []row
	for _, m := range []measurement{
		{"alloc", measureAlloc}, {"carve", measureCarve}, {"service", measureService}, {"socket", measureSocket},
		{"start", measureStart}, {"plan", measurePlan}, {"owner", measureOwner}, {"import", measureImport}, {"cluster", measureCluster}, {"docker", measureDocker},
	} {
		if !match.MatchString(m.name) {
			continue
		}
		work := env{dir: filepath.Join(dir, m.name), memory: filepath.Join(memory, m.name), berth: berth, round: round}
		if err := errors.Join(os.Mkdir(work.dir, 0o700), os.Mkdir(work.memory, 0o700)); err != nil {
			return err
		}
		rows, err := m.run(work)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		for _, r := range rows {
			fmt.Println(r.line())
		}
		all = append(all, rows...)
		os.RemoveAll(work.dir)
		os.RemoveAll(work.memory)
	}
	if out == "" || only != "" {
		return nil
	}
	return os.WriteFile(out, []byte(report(all)), 0o644)
}

func (r row) line() string {
	return fmt.Sprintf("| %s | %s | %s | %s |", r.what, r.bound, r.measured, r.verdict)
}

// medium is where a measurement keeps its files: on the disk, and in memory, which tells the disk's share from ours.
type medium struct {
	name, path string
	disk       bool
}

func (e env) media() []medium {
	return []medium{{"on this disk", e.dir, true}, {"in memory", e.memory, false}}
}

func report(rows []row) string {
	var b strings.Builder
	b.WriteString(`# Benchmarks

Written by ` + "`make bench`" + `, which measures each figure beside its yardstick in the same run. Ratios are medians of
rounds that alternate; absolute figures belong to the machine that ran them (` + machine() + `).

| what | bound | measured | |
|---|---|---|---|
`)
	for _, r := range rows {
		b.WriteString(r.line() + "\n")
	}
	b.WriteString(explanation)
	return b.String()
}

// explanation says how the figures came about.
const explanation = `
How they are measured:

- *alloc* and *carve*: the sets and the tree of ` + "`internal/alloc`" + ` alone, in memory.
- *on this disk*, *in memory*: the state on the disk of the machine, and on a tmpfs, where a sync costs nothing: the second tells what
  Berth itself costs.
- *Service*: ` + "`ipam.Service`" + ` on a bbolt file, lease and event durable before each answer, against bare bbolt transactions
  that put two keys of the same size for each address, as many addresses in a transaction as there are callers. The bounds of
  8k, 60k and 120k a second were set on a machine where such keys made 9.9k, 88k and 192k: as a ratio, 0.81, 0.68 and 0.62.
- *socket*: RequestAddress as HTTP on a unix socket, load generator on the same machine, against a handler of
  docker/go-plugins-helpers that answers without doing anything.
- *network show*: the command as a whole, beside the time of its request alone. *take*: POST available-ips of the admin API
  and RequestAddress, each as HTTP on a unix socket, on the same state.
- *owner rules*: addresses taken by names as Compose gives them, in turn on two networks that are the same but for the rules, of which the
  last one matches. *check*: the comparison of a view of an engine with the records, all in use.
- *import and export*: the commands as a whole, from a YAML document to the answer of a daemon with an empty state, and back. *During
  an import*: callers who take addresses all the time, for a while alone and then while the command imports a fifth of that plan.
- *start*: the daemon over a state with 65,536 leases taken one by one, from exec to the first answer, the check of the whole
  file included; resident memory as the kernel counts it (VmRSS) after that.
- *etcd*: hosts with a store and an ` + "`ipam.Service`" + ` each, in this process, that take addresses of one pool, 64 callers over all of them,
  against one etcd client whose 64 callers each put one key in a transaction of its own, unless it is there. Three members run in this
  process, on the same cores as the hosts; Debian's one member is a process of its own. Duplicates are counted from what callers were
  given, and held against the records that each host reads.
- *docker run*: whole runs of the command, alternating between a network on Berth and one on the engine's own IPAM.
`

func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	model := "unknown processor"
	if m := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(text); m != nil {
		model = string(m[1])
	}
	return fmt.Sprintf("%d cores, %s", strings.Count(string(text), "processor\t"), model)
}

func median[T int | float64 | time.Duration](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
