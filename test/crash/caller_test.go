package crash

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// callers is the number of concurrent callers.
const callers = 16

// caller takes and releases until it is told to stop or the daemon no longer answers.
type caller struct {
	l      *ledger
	random *rand.Rand
	n      int
	shared string // the pool of all callers
	mine   []*lease
	own    *pool
}

// work starts the callers and returns a function that waits until all have stopped.
func work(l *ledger, shared string, seed uint64, stop <-chan struct{}) (wait func()) {
	var wg sync.WaitGroup
	for n := range callers {
		c := &caller{l: l, random: rand.New(rand.NewPCG(seed, uint64(n))), n: n, shared: shared}
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := c.act()
				text, answered := refused(err)
				switch {
				case err == nil:
				// the shared store is away: an immediate retry makes no sense
				case strings.Contains(text, "the cluster's spaces"):
					time.Sleep(5 * time.Millisecond)
				case !answered:
					return // killed
				default:
					l.note(text)
				}
			}
		})
	}
	return wg.Wait
}

// act does one action. It releases most addresses that it took, so the pool is never full for long, and seldom the
// newest.
func (c *caller) act() error {
	switch p := c.random.IntN(100); {
	case p < 3 && !c.l.onePool:
		if c.own != nil {
			own := c.own
			c.own = nil
			return c.l.detach(own)
		}
		own, err := c.l.attach(fmt.Sprintf("10.%d.%d.0/28", 100+c.n, c.random.IntN(256)), nil)
		c.own = own
		return err
	case p < 52 || len(c.mine) == 0:
		addr := ""
		if c.random.IntN(8) == 0 {
			addr = fmt.Sprintf("10.9.%d.%d", c.random.IntN(4), 1+c.random.IntN(250))
		}
		le, err := c.l.take(c.shared, addr)
		if err == nil {
			c.mine = append(c.mine, le)
		}
		return err
	default:
		i := c.random.IntN(len(c.mine))
		le := c.mine[i]
		c.mine = append(c.mine[:i], c.mine[i+1:]...)
		return c.l.give(le)
	}
}
