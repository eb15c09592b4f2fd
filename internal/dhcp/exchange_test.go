package dhcp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
)

// talking runs a talk whose question has ten seconds.
func talking(t *testing.T, say func(try int) error, hear func(datagram) verdict, sends ...time.Duration) (said int,
	took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &exchange{begun: time.Now(), within: 10 * time.Second, heard: make(chan datagram, heardAtOnce)}
		ctx, cancel := context.WithTimeout(t.Context(), x.within)
		defer cancel()
		for i, at := range sends {
			time.AfterFunc(at, func() { x.heard <- datagram{payload: []byte{byte(i)}} })
		}
		begun := time.Now()
		said, err = x.talk(ctx, say, hear)
		took = time.Since(begun)
	})
	return said, took, err
}

// TestTalkSilent: without an answer a message is sent four times, the later ones after about 1, 3 and 6 tenths of
// the time. The talk uses all of the time, and no more.
func TestTalkSilent(t *testing.T) {
	for range 100 {
		var at []time.Duration
		begun := time.Time{}
		said, took, err := talking(t, func(int) error {
			if begun.IsZero() {
				begun = time.Now()
			}
			at = append(at, time.Since(begun))
			return nil
		}, func(datagram) verdict { return settled })
		if said != tries || !errors.Is(err, errSilent) || took < 9*time.Second || took > 10*time.Second {
			t.Fatalf("it was said %d times within %s (%v)", said, took, err)
		}
		for i, want := range []time.Duration{0, 1, 3, 6} {
			if off := at[i] - want*time.Second; off.Abs() > time.Duration(i)*250*time.Millisecond {
				t.Errorf("it was said after %s", at)
			}
		}
	}
}

// TestTalk: an answer ends the talk. An answer that a better one may replace ends it a moment later.
func TestTalk(t *testing.T) {
	hears := func(verdicts ...verdict) func(datagram) verdict {
		return func(d datagram) verdict { return verdicts[d.payload[0]] }
	}
	say := func(int) error { return nil }
	for _, c := range []struct {
		name  string
		hear  func(datagram) verdict
		sends []time.Duration
		said  int
		after time.Duration
	}{
		{"an answer", hears(settled), []time.Duration{time.Millisecond}, 1, time.Millisecond},
		{"what is none, then one", hears(passedOver, settled), []time.Duration{time.Millisecond, 2 * time.Second}, 2,
			2 * time.Second},
		{"one that is not good", hears(unlessBetter), []time.Duration{time.Millisecond}, 1, time.Millisecond + moment},
		{"several that are not", hears(unlessBetter, unlessBetter), []time.Duration{0, moment / 2}, 1, moment},
		{"a better one", hears(unlessBetter, settled), []time.Duration{0, moment / 2}, 1, moment / 2},
		{"one that is not good, at the end", hears(unlessBetter), []time.Duration{9900 * time.Millisecond}, 4,
			10 * time.Second},
	} {
		said, took, err := talking(t, say, c.hear, c.sends...)
		if c.after == 10*time.Second { // the last pause may end a little early
			c.after = took
		}
		if err != nil && !errors.Is(err, errSilent) || said != c.said || took != c.after {
			t.Errorf("%s: said %d times, %s (%v)", c.name, said, took, err)
		}
	}
}

// TestTalkParent: an interface that cannot be used ends the talk at once. The talk waits for an interface that is
// coming up, and does not count that as a try.
func TestTalkParent(t *testing.T) {
	down := &failure{kind: ipam.LANParent, text: "it is down"}
	said, took, err := talking(t, func(int) error { return down }, nil)
	if said != 0 || took != 0 || !errors.Is(err, down) {
		t.Errorf("said %d times, %s (%v)", said, took, err)
	}
	young := &failure{kind: ipam.LANParent, text: "it has no address", soon: true}
	calls := 0
	said, took, err = talking(t, func(int) error {
		if calls++; calls < 10 {
			return young
		}
		return nil
	}, func(datagram) verdict { return settled }, time.Second)
	if said != 1 || took != time.Second || err != nil {
		t.Errorf("said %d times, %s (%v)", said, took, err)
	}
	said, took, err = talking(t, func(int) error { return young }, nil)
	if said != 0 || took < 3*time.Second || took > 4*time.Second || !errors.Is(err, young) {
		t.Errorf("said %d times, %s (%v)", said, took, err)
	}
}
