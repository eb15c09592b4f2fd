//go:build edge

package edge_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"berth/test/lab"
)

// longest are the slowest tests. They start first.
var longest = []string{"TestTakeOverUnderFaults", "TestMoves"}

// runBeside runs every test in its own process and namespaces. Under -short several run at a time, as they mostly
// wait. A test's output is printed in one piece at its end. It returns the exit status of this process.
func runBeside() int {
	flag.Parse()
	shared, err := os.MkdirTemp("", "berth-edge")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(shared)
	tests, err := chosen()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if len(tests) < 2 {
		cmd := enter(shared)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	queue := make(chan string, len(tests))
	for _, name := range tests {
		queue <- name
	}
	close(queue)
	var wg sync.WaitGroup
	var mu sync.Mutex
	failed := false
	workers := 1 // the tests' time limits are for an otherwise idle machine
	if testing.Short() {
		workers = 2 * runtime.GOMAXPROCS(0)
	}
	for range workers {
		wg.Go(func() {
			runtime.LockOSThread() // a test ends with the thread that started it
			for name := range queue {
				out, err := enter(shared, "-test.run", "^"+name+"$").CombinedOutput()
				mu.Lock()
				if err != nil {
					failed = true
				}
				_, _ = os.Stdout.Write(withoutEnd(out))
				if _, ended := err.(*exec.ExitError); err != nil && !ended {
					fmt.Println(name+":", err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if failed {
		fmt.Println("FAIL")
		return 1
	}
	fmt.Println("PASS")
	return 0
}

// chosen are the tests to run. It is empty where only `go test` can tell, such as for -run with a subtest.
func chosen() ([]string, error) {
	run := flag.Lookup("test.run").Value.String()
	for _, one := range []string{"test.list", "test.bench", "test.skip"} {
		if flag.Lookup(one).Value.String() != "" {
			return nil, nil
		}
	}
	if strings.Contains(run, "/") {
		return nil, nil
	}
	if run == "" {
		run = "."
	}
	out, err := enter("-", "-test.list", run).Output()
	if err != nil {
		return nil, fmt.Errorf("these tests need root: %w: %s", err, out)
	}
	var first, others []string
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(name, "Test"):
		case slices.Contains(longest, name):
			first = append(first, name)
		default:
			others = append(others, name)
		}
	}
	return append(first, others...), nil
}

// withoutEnd is the output of a test without the last line, which is about the process.
func withoutEnd(out []byte) []byte {
	rest := bytes.TrimSuffix(out, []byte("\n"))
	at := bytes.LastIndexByte(rest, '\n') + 1
	switch strings.TrimLeft(string(rest[at:]), "\x16") {
	case "PASS", "FAIL":
		return out[:at]
	}
	return out
}

// buildBerth builds the program once for all tests: the first test that needs it builds it, and the others wait.
func buildBerth(t testing.TB) string {
	t.Helper()
	path := filepath.Join(os.Getenv(inside), "berth")
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		defer lock.Close()
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	lab.Must(t, err)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "berth/cmd/berth").CombinedOutput()
	if err != nil {
		_ = os.Remove(path)
		t.Fatalf("cannot build berth: %v: %s", err, out)
	}
	return path
}
