package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/edge"
	"berth/internal/edge/command"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var _ edge.Provider = (*command.Provider)(nil)

// program writes a shell script. It returns its path and the directory that the script finds in $DIR.
func program(t *testing.T, body string) (path, dir string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "program")
	text := "#!/bin/sh\nDIR=" + dir + "\n" + body + "\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, dir
}

func wanted() edge.State {
	return edge.State{
		Ranges: []edge.Range{{From: netip.MustParseAddr("192.0.2.1"), To: netip.MustParseAddr("192.0.2.9"),
			Announce: "eth0", OnCut: edge.Withdraw, TTL: 5 * time.Second}},
		Mappings: []edge.Mapping{{Elastic: netip.MustParseAddr("192.0.2.1"), Guest: netip.MustParseAddr("172.30.1.2"),
			Subnet: netip.MustParsePrefix("172.30.1.0/24")}},
		Until: 7,
	}
}

// TestProgram: the program gets exactly what every provider gets. CS-12.
func TestProgram(t *testing.T) {
	path, dir := program(t, `
echo "$*" >> $DIR/calls
case $2 in
set) cat > $DIR/state ;;
renew) cat > $DIR/until ;;
enabled) test -e $DIR/state && echo true || echo false ;;
remove) rm $DIR/state ;;
esac`)
	p := command.New(path, "--router=a b")
	enabled := func(want bool) {
		t.Helper()
		got, err := p.Enabled(t.Context())
		if err != nil || got != want {
			t.Errorf("enabled: %v (%v), want %v", got, err, want)
		}
	}
	enabled(false)
	if err := p.Set(t.Context(), wanted()); err != nil {
		t.Fatal(err)
	}
	var got edge.State
	read(t, filepath.Join(dir, "state"), &got)
	if d := cmp.Diff(wanted(), got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
		t.Error(d)
	}
	now, err := edge.Now()
	if err != nil {
		t.Fatal(err)
	}
	until := now.Add(time.Minute)
	if err := p.Renew(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	var renewed map[string]edge.BootTime
	read(t, filepath.Join(dir, "until"), &renewed)
	if renewed["until"] != until {
		t.Errorf("renewed until %v, not %v", renewed, until)
	}
	enabled(true)
	if err := p.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	enabled(false)
	if err := p.Set(t.Context(), edge.State{}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "state"))
	if want := `{"ranges":[],"mappings":[]}` + "\n"; err != nil || string(b) != want {
		t.Errorf("an empty state is %q (%v), want %q", b, err, want)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil || !strings.HasPrefix(string(calls), "--router=a b enabled\n--router=a b set\n") {
		t.Errorf("called with %q (%v)", calls, err)
	}
}

func read(t *testing.T, file string, to any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefuses: an error contains the program's own words. A late renewal is recognized as one.
func TestRefuses(t *testing.T) {
	path, dir := program(t, `
case $1 in
set) cat > $DIR/state; echo "the router is away" >&2; exit 1 ;;
renew) exit 3 ;;
enabled) echo perhaps ;;
esac`)
	p := command.New(path)
	if err := p.Set(t.Context(), wanted()); err == nil || !strings.Contains(err.Error(), "the router is away") {
		t.Errorf("set: %v", err)
	}
	wrong := wanted()
	wrong.Ranges = nil
	if err := os.Remove(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	if err := p.Set(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "lies in no range") {
		t.Errorf("a state that contradicts itself: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "state")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the program was given a state that contradicts itself")
	}
	if _, err := p.Enabled(t.Context()); err == nil || !strings.Contains(err.Error(), "perhaps") {
		t.Errorf("enabled: %v", err)
	}
	now, err := edge.Now()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Renew(t.Context(), now.Add(time.Minute)); !errors.Is(err, edge.ErrExpired) {
		t.Errorf("a program that says so: %v", err)
	}
	if err := command.New("/nowhere").Renew(t.Context(), now); !errors.Is(err, edge.ErrExpired) {
		t.Errorf("a time that has passed: %v", err)
	}
	if err := command.New("/nowhere").Remove(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// TestHangs: if a program does not end, it is killed with the context, and so is everything that it has started.
func TestHangs(t *testing.T) {
	path, _ := program(t, `sleep 600 & wait`)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := command.New(path).Remove(ctx); err == nil {
		t.Error("it ended well")
	}
	if d := time.Since(begin); d > 30*time.Second {
		t.Errorf("it took %s", d)
	}
}
