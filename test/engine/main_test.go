//go:build engine

package engine

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"berth/test/lab"
)

var cleanOnly = flag.Bool("clean", false, "remove what an interrupted run left, and run nothing")

// binary is the Berth under test, built by TestMain.
var binary = filepath.Join(base, "bin", "berth")

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine tests:", err)
		code = 1
	}
	os.Exit(code)
}

// runAll runs the tests between two clean-ups.
func runAll(m *testing.M) (code int, err error) {
	release, err := lab.Exclusive("berth-t")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, release()) }()
	left, err := cleanUp(machineEngine)
	if err != nil {
		return 1, fmt.Errorf("before the tests: %w", err)
	}
	for _, name := range left {
		fmt.Fprintf(os.Stderr, "passed over: network %s: %v\n", name, errMiscounted)
	}
	if *cleanOnly {
		return 0, nil
	}
	if prefix, octet, err = siteBeside(left); err != nil {
		return 1, err
	}
	defer func() {
		if _, cleanErr := cleanUp(machineEngine); cleanErr != nil {
			err = fmt.Errorf("after the tests: %w", cleanErr)
		}
	}()
	if err := inMemory(); err != nil {
		return 1, err
	}
	if err := lab.Build(binary, "test-1"); err != nil {
		return 1, err
	}
	if err := errors.Join(readVersion(machineEngine), importImage(machineEngine)); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, reportSkipped()
}
