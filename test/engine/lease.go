//go:build engine

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"berth/test/ground"
)

// Lease is what the tests read of one line of `berth lease ls --format json`.
type Lease struct {
	ID      uint64    `json:"id"` // that of no other lease, also of the same address
	Address string    `json:"address"`
	Kind    string    `json:"kind"`
	MAC     string    `json:"mac"`
	Name    string    `json:"name"`
	Space   string    `json:"space"`
	Host    string    `json:"host"`
	Pool    string    `json:"pool"`  // by which an engine gives it back
	Owner   string    `json:"owner"` // by a reservation
	Since   time.Time `json:"since"`
	SeenBy  struct {  // as the witness says
		Container, Project, Service, State, Network string
	} `json:"seen_by"`
}

// leases asks Berth's command line for the addresses in use inside a prefix.
func leases(b Berth, within string) ([]Lease, error) {
	prefix, err := netip.ParsePrefix(within)
	if err != nil {
		return nil, err
	}
	out, err := berth(b, "lease", "ls", "--format", "json")
	if err != nil {
		return nil, err
	}
	all, err := decodeLeases([]byte(out))
	if err != nil {
		return nil, fmt.Errorf("berth lease ls --format json: %w:\n%s", err, out)
	}
	var inside []Lease
	for _, l := range all {
		addr, err := netip.ParseAddr(l.Address)
		if err != nil {
			return nil, fmt.Errorf("berth lease ls shows the address %q", l.Address)
		}
		if prefix.Contains(addr) {
			inside = append(inside, l)
		}
	}
	return inside, nil
}

// berth runs Berth's command line against one daemon.
func berth(b Berth, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(20*time.Second))
	defer cancel()
	return run(ctx, nil, binary, append([]string{"--admin-socket", b.AdminSocket()}, args...)...)
}

// decodeLeases reads one array, or one object after the other.
func decodeLeases(out []byte) ([]Lease, error) {
	if out = bytes.TrimSpace(out); bytes.HasPrefix(out, []byte("[")) {
		var all []Lease
		return all, json.Unmarshal(out, &all)
	}
	var all []Lease
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l Lease
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}
