// Command bench measures what Berth promises about speed and size, each figure beside its yardstick in the same run,
// and writes docs/dev/benchmarks.md. Absolute figures depend on the machine and on what else it does; the ratios travel.
//
// Each measurement is a function of a file of its own that returns rows; main runs them one after the other, on an
// otherwise idle machine, and prints them as they come.
package main

import (
	_ "embed"
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
	if len(os.Args) == 4 && os.Args[1] == handlerWord {
		if err := serveHandler(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	only := flag.String("only", "", "run the measurements whose name matches this expression")
	out := flag.String("o", "docs/dev/benchmarks.md", "where to write the report; empty: only print")
	round := flag.Duration("round", 700*time.Millisecond, "length of each round of a comparison")
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
		{"start", measureStart}, {"million", measureMillion}, {"plan", measurePlan}, {"owner", measureOwner},
		{"guess", measureGuess}, {"probed", measureProbed}, {"throwaway", measureThrowAways},
		{"elastic", measureElastic}, {"import", measureImport}, {"deploy", measureDeploy},
		{"cluster", measureCluster}, {"docker", measureDocker}, {"asked", measureAsked}, {"metrics", measureMetrics},
		{"names", measureNames}, {"watched", measureWatched},
		{"dhcp", measureDHCP}, {"page", measurePage},
	} {
		if !match.MatchString(m.name) {
			continue
		}
		work := env{dir: filepath.Join(dir, m.name), memory: filepath.Join(memory, m.name), berth: berth, round: round}
		if err := errors.Join(os.Mkdir(work.dir, 0o700), os.Mkdir(work.memory, 0o700)); err != nil {
			return err
		}
		begun := time.Now()
		rows, err := m.run(work)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", m.name, time.Since(begun).Round(time.Second))
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
rounds that alternate, and need not be the quotient of the rates beside them; absolute figures belong to the machine
that ran them (` + machine() + `). Of addresses a second a bound is the least that is wanted, of time, memory and
size the most; what is met goes by figures that are not rounded.

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
//
//go:embed measured.md
var explanation string

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
