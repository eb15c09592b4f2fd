package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"berth/internal/admin/client"
	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/test/still"
)

// planBound is how long a plan of a hundred services with three replicas each may take, the engine's own time apart.
const planBound = 2 * time.Second

// measureDeploy times `berth deploy plan` as a whole, of a project whose containers run with other addresses than those
// that are reserved for them, beside an engine and a compose command that answer at once.
func measureDeploy(e env) ([]row, error) {
	project := still.Project{Services: 100, Replicas: 3}
	dir, socket := filepath.Join(e.dir, "shop"), filepath.Join(e.dir, "deploy.sock")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "compose.yaml")
	if err := os.WriteFile(file, []byte(project.File()), 0o600); err != nil {
		return nil, err
	}
	compose, err := still.NewCommand(e.dir)
	if err != nil {
		return nil, err
	}
	if err := compose.Hashes(project.Hashes()); err != nil {
		return nil, err
	}
	engine := &still.Engine{}
	project.Run(engine, "shop")
	host, err := engine.Serve(e.dir)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	daemon := exec.Command(e.berth, "serve", "--state", filepath.Join(e.dir, "deploy"), "--plugin-socket",
		filepath.Join(e.dir, "deploy-plugin.sock"), "--admin-socket", socket, "--log-level", "warning")
	daemon.Stderr = os.Stderr
	if err := daemon.Start(); err != nil {
		return nil, err
	}
	defer daemon.Wait()
	defer daemon.Process.Signal(syscall.SIGTERM)
	if err := planFront(socket); err != nil {
		return nil, err
	}
	var took []time.Duration
	for range 11 {
		start := time.Now()
		cmd := exec.Command(e.berth, "deploy", "plan", "--admin-socket", socket, "--docker-host", host, "-f", file,
			"--compose-command", compose.Words())
		said, err := cmd.CombinedOutput()
		took = append(took, time.Since(start))
		if cmd.ProcessState.ExitCode() != 2 || !bytes.Contains(said, []byte("300 to recreate")) {
			return nil, fmt.Errorf("berth deploy plan: %w\n%s", err, said)
		}
	}
	if writes := engine.Writes(); len(writes) > 0 {
		return nil, fmt.Errorf("a plan asked the engine for %v", writes)
	}
	return []row{{"deploy plan of 100 services with 300 replicas", fmt.Sprintf("under %v", planBound),
		median(took).Round(time.Millisecond).String(), verdict(median(took) < planBound)}}, nil
}

// planFront plans the network of the project, once the daemon answers.
func planFront(socket string) error {
	c := client.New(socket)
	defer c.Close()
	pool, err := alloc.ParseRange("10.8.0.10+30000")
	if err != nil {
		return err
	}
	edits := []ipam.Edit{
		&ipam.CreateNetwork{Name: "front", Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.8.0.0/16"),
			Gateway: netip.MustParseAddr("10.8.0.1")}}},
		&ipam.AddPool{Network: "front", Range: ipam.Range{IPRange: pool}},
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err = c.Edit(context.Background(), client.EditOptions{}, edits...); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(errors.New("the network cannot be planned"), err)
		}
	}
}
