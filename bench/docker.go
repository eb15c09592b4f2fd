package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	benchName   = "berth-bench"         // of the driver, the networks and the image
	busyboxPath = "build/tools/busybox" // unpacked by scripts/needs
)

// measureDocker alternates `docker run --rm` on a Berth network and on one of the engine's own IPAM.
func measureDocker(e env) (rows []row, err error) {
	socket := filepath.Join("/run/docker/plugins", benchName+".sock")
	daemon := exec.Command(e.berth, "serve", "--state", filepath.Join(e.dir, "state"), "--plugin-socket", socket,
		"--admin-socket", filepath.Join(e.dir, "admin.sock"), "--log-level", "warning")
	daemon.Stderr = os.Stderr
	if err := daemon.Start(); err != nil {
		return nil, err
	}
	var undo [][]string
	defer func() {
		for _, args := range undo {
			err = errors.Join(err, runDocker(nil, args...))
		}
		err = errors.Join(err, daemon.Process.Signal(syscall.SIGTERM), daemon.Wait())
	}()
	image, err := busyboxImage()
	if err != nil {
		return nil, err
	}
	if err := awaitSocket(socket); err != nil {
		return nil, err
	}
	builtin := benchName + "-builtin"
	for _, step := range []struct{ do, undo []string }{
		{[]string{"network", "create", "--ipam-driver", benchName, "--subnet", "10.214.1.0/24", benchName},
			[]string{"network", "rm", benchName}},
		{[]string{"network", "create", "--subnet", "10.214.2.0/24", builtin}, []string{"network", "rm", builtin}},
		{[]string{"import", "-", benchName}, []string{"image", "rm", benchName}},
	} {
		if err := runDocker(image, step.do...); err != nil {
			return nil, err
		}
		undo = append(undo, step.undo)
	}
	return compareRuns()
}

func compareRuns() ([]row, error) {
	var ours, theirs, ratios []float64
	for i := range 21 {
		a, err := timeRun(benchName)
		if err != nil {
			return nil, err
		}
		b, err := timeRun(benchName + "-builtin")
		if err != nil {
			return nil, err
		}
		if i == 0 {
			continue // warm up
		}
		ours, theirs, ratios = append(ours, a), append(theirs, b), append(ratios, a/b)
	}
	ratio := median(ratios)
	return []row{{"docker run --rm on a Berth network, against the built-in IPAM", "1.05x",
		fmt.Sprintf("%.3fx (%.0f ms, %.0f ms)", ratio, median(ours), median(theirs)), verdict(ratio <= 1.05)}}, nil
}

// timeRun is the time of one container's whole life in milliseconds.
func timeRun(network string) (float64, error) {
	start := time.Now()
	err := runDocker(nil, "run", "--rm", "--network", network, benchName, "/busybox", "true")
	return float64(time.Since(start).Microseconds()) / 1000, err
}

func runDocker(stdin []byte, args ...string) error {
	cmd := exec.Command("docker", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(text))
	}
	return nil
}

// busyboxImage is a root filesystem of one static busybox.
func busyboxImage() ([]byte, error) {
	binary, err := os.ReadFile(busyboxPath)
	if err != nil {
		return nil, fmt.Errorf("%w (scripts/needs busybox unpacks it)", err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "busybox", Mode: 0o755, Size: int64(len(binary))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(binary); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}

func awaitSocket(path string) error {
	for range 500 {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the daemon did not make %s", path)
}
