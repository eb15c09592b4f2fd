package admin

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/admin/api"
)

// TestTurns: a large request waits for its turn, but not for long. A small one does not wait.
func TestTurns(t *testing.T) { synctest.Test(t, testTurns) }

func testTurns(t *testing.T) {
	places := make(chan struct{}, 1)
	read := func(size int) (*turnBody, error) {
		b := &turnBody{ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("x", size))),
			turn: &turn{places: places}, ctx: t.Context()}
		text, err := io.ReadAll(b)
		if err == nil && len(text) != size {
			t.Errorf("%d of %d bytes were read", len(text), size)
		}
		return b, err
	}
	first, err := read(10 * smallBody)
	must(t, err)
	if small, err := read(smallBody - 1); err != nil || small.mine {
		t.Errorf("a small one: %v", err)
	}
	begun := time.Now()
	var p *api.Problem
	if _, err := read(smallBody + 1); !errors.As(err, &p) || p.Code != api.CodeBusy || time.Since(begun) != turnTime {
		t.Errorf("a second one is refused with %v after %s", err, time.Since(begun))
	}
	time.AfterFunc(turnTime/2, first.end)
	second, err := read(smallBody + 1)
	must(t, err)
	second.end()
	second.end() // it has given up its turn
	if len(places) != 0 {
		t.Error("a place was not given back")
	}
}

// TestLargeNews: a large line waits for its turn, and is read in full.
func TestLargeNews(t *testing.T) { synctest.Test(t, testLargeNews) }

func testLargeNews(t *testing.T) {
	places := make(chan struct{}, 1)
	lines := func(text string) (*bufio.Scanner, *turn) {
		large := &turn{places: places}
		s := bufio.NewScanner(strings.NewReader(text))
		s.Buffer(nil, maxNews)
		s.Split(large.splitting(t.Context()))
		return s, large
	}
	long := strings.Repeat("x", 10*smallBody)
	s, large := lines("a\n" + long + "\nb")
	for _, want := range []string{"a", long, "b"} {
		if !s.Scan() || s.Text() != want || large.mine != (want == long) {
			t.Fatalf("a line of %d bytes, want %d: %v, its turn %v", len(s.Text()), len(want), s.Err(), large.mine)
		}
		if want == long {
			other, _ := lines(long)
			var p *api.Problem
			if other.Scan() || !errors.As(other.Err(), &p) || p.Code != api.CodeBusy {
				t.Errorf("another one meanwhile: %v", other.Err())
			}
		}
		large.end()
	}
}
