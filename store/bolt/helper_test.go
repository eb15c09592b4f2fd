package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"berth/store"
)

// The tests of kills and faults run this test binary again, as a program that writes to a state and prints what
// was acknowledged. The environment selects that.
const (
	helperState   = "BERTH_TEST_STATE"   // path of the state
	helperWriters = "BERTH_TEST_WRITERS" // "writers rounds": number of callers, and of updates of each
)

func TestMain(m *testing.M) {
	if path := os.Getenv(helperState); path != "" {
		os.Exit(helper(path))
	}
	os.Exit(m.Run())
}

// helper writes records in pairs, from several callers at once, and prints one line for each answer: "ack", "full",
// "unknown" or "other", and the number. Exit 3: the state was not opened.
func helper(path string) int {
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		fmt.Println("open", strings.ReplaceAll(err.Error(), "\n", " "))
		return 3
	}
	fmt.Println("ready")
	var writers, rounds int
	if _, err := fmt.Sscan(os.Getenv(helperWriters), &writers, &rounds); err != nil {
		return 4
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				n := os.Getpid()*1_000_000 + w*10_000 + r
				fmt.Println(verdict(writePair(s, n)), n)
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		return 5
	}
	return 0
}

func verdict(err error) string {
	switch {
	case err == nil:
		return "ack"
	case errors.Is(err, store.ErrUnknown):
		return "unknown"
	case errors.Is(err, store.ErrNoSpace):
		return "full"
	}
	return "other " + err.Error()
}

func writePair(s store.Store, n int) error {
	return s.Update(context.Background(), func(tx store.Tx) error {
		value := []byte(strings.Repeat("v", 100) + strconv.Itoa(n))
		if err := tx.Put(fmt.Appendf(nil, "lease/%020d", n), value); err != nil {
			return err
		}
		return tx.Put(fmt.Appendf(nil, "event/%020d", n), value)
	})
}

// ran is the result of one run of the helper.
type ran struct {
	opened bool
	answer map[string][]string // verdict -> numbers
	lines  []string
	killed bool
	exit   int
}

// runHelper runs the helper, under strace with the given faults if there are any. It calls during for each line.
func runHelper(t *testing.T, path, writers string, during func(line string, c *exec.Cmd), faults ...string) ran {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	args := []string{self}
	if len(faults) > 0 {
		args = append([]string{"strace", "-f", "-qq", "-o", filepath.Join(t.TempDir(), "trace")}, faults...)
		args = append(args, self)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), helperState+"="+path, helperWriters+"="+writers, "GORACE=atexit_sleep_ms=0")
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	r := ran{answer: map[string][]string{}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		r.lines = append(r.lines, line)
		word, rest, _ := strings.Cut(line, " ")
		if word == "ready" {
			r.opened = true
		} else {
			r.answer[word] = append(r.answer[word], rest)
		}
		if during != nil {
			during(line, c)
		}
	}
	err = c.Wait()
	r.exit = c.ProcessState.ExitCode()
	r.killed = err != nil && r.exit < 0
	return r
}

// wantWhole opens the state without faults: it must be sound, and hold all acknowledged writes, no refused ones,
// and no half of a pair. It returns the number of pairs.
func wantWhole(t *testing.T, path string, runs ...ran) int {
	t.Helper()
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatalf("the state does not open afterwards: %v", err)
	}
	has := map[string]int{}
	view := func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			has[strings.TrimLeft(string(rec.Key[6:]), "0")]++
		}
		return nil
	}
	must(t, s.View(context.Background(), view))
	must(t, writePair(s, 1))
	must(t, s.Close())
	for n, halves := range has {
		if halves != 2 {
			t.Errorf("%s is there by half", n)
		}
	}
	for _, r := range runs {
		for _, n := range r.answer["ack"] {
			if has[n] == 0 {
				t.Errorf("%s was acknowledged and is gone", n)
			}
		}
		for _, n := range r.answer["full"] {
			if has[n] != 0 {
				t.Errorf("%s was refused and is there", n)
			}
		}
		if len(r.answer["other"]) > 0 {
			t.Errorf("answers of another kind: %q", r.answer["other"])
		}
	}
	if _, err := Check(context.Background(), path); err != nil {
		t.Errorf("Check: %v", err)
	}
	return len(has)
}
