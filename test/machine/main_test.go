//go:build machine

package machine

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"berth/test/lab"
)

var (
	tree        = flag.String("tree", "", "the Debian that scripts/machine-tree made")
	otherEngine = flag.String("engine", "", "the `directory` of a Docker Engine that scripts/dockerd built, instead of Debian's")
	cleanOnly   = flag.Bool("clean", false, "remove what an interrupted run left, and run nothing")
)

// The installed Berth, and the one to upgrade to: the same program with two versions.
var (
	binary = filepath.Join(base, "bin", "berth-1")
	newer  = filepath.Join(base, "bin", "berth-2")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "machine tests:", err)
		code = 1
	}
	os.Exit(code)
}

// runAll runs the tests with a clean-up before and after.
func runAll(m *testing.M) (code int, err error) {
	release, err := lab.Exclusive("berth-m")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := cleanUp(); err != nil || *cleanOnly {
		return 0, err
	}
	if *tree == "" {
		return 1, errors.New("-tree names no Debian: use make machine")
	}
	cleanWhenInterrupted()
	defer func() { err = errors.Join(err, cleanUp()) }()
	if err := errors.Join(lab.Build(binary, "test-1"), lab.Build(newer, "test-2")); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// cleanWhenInterrupted cleans up if the run is ended from outside.
func cleanWhenInterrupted() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		if err := cleanUp(); err != nil {
			fmt.Fprintln(os.Stderr, "machine tests:", err)
		}
		os.Exit(130)
	}()
}
