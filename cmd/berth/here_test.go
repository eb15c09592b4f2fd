package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/cli"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// inheriting are the verbs that pass the environment of their process to Compose or to programs they start.
var inheriting = []string{"adopt", "compose", "deploy", "edge", "leave"}

// berthCommand is `berth ARGS` of a script. It runs in the test's process, which is far cheaper than starting one.
// Scripts write `exec berth` if the process matters: for daemons, signals, standard input, terminals, and relative
// paths of sockets.
func berthCommand(ts *testscript.TestScript, neg bool, args []string) {
	if code := berth(ts, args, ts.Stdout(), ts.Stderr()); (code == 0) == neg {
		ts.Fatalf("berth ended with code %d", code)
	}
}

// exits CODE berth ARGS..., or CODE exec PROGRAM ARGS..., succeeds if the command ends with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE berth|exec ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var got int
	if args[1] == "berth" {
		got = berth(ts, args[2:], ts.Stdout(), ts.Stderr())
	} else {
		got = exitCode(ts, args[2], args[3:])
	}
	if got != want {
		ts.Fatalf("%q ended with code %d, not %d", args[1:], got, want)
	}
}

// until REGEXP berth ARGS... runs the command until it prints a line that matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "berth" {
		ts.Fatalf("usage: until REGEXP berth ARG...")
	}
	line := regexp.MustCompile("(?m)" + args[0])
	for late := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var out, failed bytes.Buffer
		berth(ts, args[2:], &out, &failed)
		if line.Match(out.Bytes()) {
			return
		}
		if time.Now().After(late) {
			ts.Fatalf("berth never printed %s:\n%s%s", args[0], out.String(), failed.String())
		}
	}
}

// berth runs a command line with the environment and the directory of a script, and returns its exit code.
func berth(ts *testscript.TestScript, args []string, out, failed io.Writer) int {
	// Other threads connect to the socket. Their working directory is that of the tests.
	socket := ts.Getenv("BERTH_ADMIN_SOCKET")
	relative := socket != "" && !filepath.IsAbs(socket) && !strings.Contains(socket, "://")
	if relative || len(args) > 0 && slices.Contains(inheriting, args[0]) {
		code := exitCode(ts, "berth", args)
		_, _ = io.WriteString(out, ts.ReadFile("stdout"))
		_, _ = io.WriteString(failed, ts.ReadFile("stderr"))
		return code
	}
	p := cli.New(version)
	p.Out, p.Stderr, p.Env = out, failed, ts.Getenv
	dir, code := ts.MkAbs("."), make(chan int)
	go func() {
		// This thread has its own working directory. It stays locked, and ends with this goroutine.
		runtime.LockOSThread()
		if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Chdir(dir)); err != nil {
			panic(err)
		}
		code <- p.Run(context.Background(), rootCommand(p, emptyHost()), args)
	}()
	return <-code
}

// exitCode runs a program with the environment and the directory of a script.
func exitCode(ts *testscript.TestScript, program string, args []string) int {
	err := ts.Exec(program, args...)
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		ts.Fatalf("%s: %v", strings.Join(append([]string{program}, args...), " "), err)
	}
	if err == nil {
		return 0
	}
	return ended.ExitCode()
}
