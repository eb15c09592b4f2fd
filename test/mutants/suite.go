package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// suite is the test binaries of a tree, containing all mutants.
type suite struct {
	options
	mutants  []mutant
	binaries []*binary
	env      []string // environment of the tests

	mu     sync.Mutex
	passed map[string]time.Time // when tests last passed without a mutant
}

// binary is the test binary of a package.
type binary struct {
	pkg   *pkg
	path  string
	units []*unit
}

// keepScript is what `go test` runs instead of each test binary, in the directory of its package. It keeps the
// binary, so one command builds all of them.
const keepScript = `#!/bin/sh
mkdir -p "$MUTANTS_KEEP$PWD" && { ln -f "$1" "$MUTANTS_KEEP$PWD/test" 2>/dev/null || cp "$1" "$MUTANTS_KEEP$PWD/test"; }
`

// build builds the tests of all packages.
func build(ctx context.Context, t *tree, mutants []mutant, o options) (*suite, error) {
	overlay, err := writeOverlay(t, mutants, o.work)
	if err != nil {
		return nil, err
	}
	keep, bin := filepath.Join(o.work, "keep"), filepath.Join(o.work, "bin")
	if err := errors.Join(os.RemoveAll(bin), os.WriteFile(keep, []byte(keepScript), 0o777)); err != nil {
		return nil, err
	}
	s := &suite{options: o, mutants: mutants, passed: map[string]time.Time{}}
	args := []string{"test", "-p", fmt.Sprint(o.workers), "-count", "1", "-vet=off", "-ldflags=-w", "-overlay", overlay,
		"-exec", keep}
	for _, p := range t.packages {
		if p.tested() {
			args = append(args, p.ImportPath)
			s.binaries = append(s.binaries, &binary{pkg: p, path: filepath.Join(bin, p.Dir, "test")})
		}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.dir
	cmd.Env = append(cmd.Environ(), "MUTANTS_KEEP="+bin, "GOTMPDIR="+o.work)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the tests: %w\n%s", err, out)
	}
	flags, err := exec.CommandContext(ctx, "go", "env", "GOFLAGS").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	s.env = append(os.Environ(),
		// Some tests build the daemon.
		"GOFLAGS="+strings.TrimSpace(string(flags)+" -overlay="+overlay),
		// Random test cases are the same for each mutant and in each run, and leave no files in the tree.
		fmt.Sprintf("RAPID_SEED=%d", o.seed), "RAPID_NOFAILFILE=true", "RAPID_SHRINKTIME=1ms")
	return s, nil
}

// outcome is the result of running tests.
type outcome struct {
	failed bool
	late   bool   // it did not end in time
	test   string // the first failed test, if known
	part   string // the failed part of that test, with the test's name
	took   time.Duration
	output string
}

var (
	failing     = regexp.MustCompile(`(?m)^--- FAIL: (\w+)|^running tests:\n\t(\w+)`)
	failingPart = regexp.MustCompile(`(?m)^    --- FAIL: (\S+)`)
)

// run runs the tests of a binary that match a pattern, or all. setting is the id of the mutant to switch on, or
// the file for the ids of reached mutants.
func (s *suite) run(ctx context.Context, b *binary, pattern, setting string, limit time.Duration) (outcome, error) {
	return s.start(ctx, b, setting, limit, "-test.run="+pattern, "-test.v", "-test.failfast")
}

func (s *suite) start(ctx context.Context, b *binary, setting string, limit time.Duration,
	flags ...string) (outcome, error) {

	temp, err := tempDir()
	if err != nil {
		return outcome{}, err
	}
	defer os.RemoveAll(temp)
	out, err := os.CreateTemp(s.work, "out")
	if err != nil {
		return outcome{}, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	limited, cancel := context.WithTimeout(ctx, limit+10*time.Second) // the binary ends itself earlier
	defer cancel()
	cmd := exec.CommandContext(limited, b.path, append(flags, "-test.paniconexit0", "-test.timeout="+limit.String(),
		"-test.skip="+s.skip, fmt.Sprint("-test.short=", s.short))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.pkg.Dir, out, out
	cmd.Env = append(slices.Clip(s.env), "PWD="+b.pkg.Dir, "TMPDIR="+temp, "MUTANT="+setting)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	start := time.Now()
	err = cmd.Run()
	o := outcome{failed: err != nil, took: time.Since(start)}
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if cmd.Process == nil {
		return o, err
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // leftovers of a failed test
	text, err := os.ReadFile(out.Name())
	o.output = string(text)
	o.late = limited.Err() != nil || o.failed && strings.Contains(o.output, "panic: test timed out after ")
	if found := failing.FindStringSubmatch(o.output); o.failed && found != nil {
		o.test = found[1] + found[2]
	}
	if found := failingPart.FindStringSubmatch(o.output); o.failed && found != nil {
		o.part = found[1]
	}
	return o, err
}

// tempDir makes a directory for the files of tests. Its path is short because of sockets, and other users may
// enter it, as some tests need that.
func tempDir() (string, error) {
	for n := 1; ; n++ {
		dir := filepath.Join(os.TempDir(), "m"+strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o777); err == nil {
			return dir, os.Chmod(dir, 0o777|os.ModeSticky)
		} else if !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
}
