package lab

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Probe asks by one datagram after the other, without waiting for answers, and keeps who answered which of them when.
// An answer is the name of who gives it, what he likes, and the number that was asked.
type Probe struct {
	conn net.Conn
	stop chan struct{}
	both sync.WaitGroup

	mu  sync.Mutex
	all []answered
}

type answered struct {
	asked, at time.Time
	by        string
}

// NewProbe asks over a connection at an interval until Stop, which closes it.
func NewProbe(conn net.Conn, every time.Duration) *Probe {
	p := &Probe{conn: conn, stop: make(chan struct{})}
	p.both.Go(func() { p.ask(every) })
	p.both.Go(p.hear)
	return p
}

// ask numbers what it asks by the time, so that no number is another probe's, too.
func (p *Probe) ask(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			_, _ = fmt.Fprintf(p.conn, "%d\n", time.Now().UnixNano()) // nobody may be there at this moment
		}
	}
}

func (p *Probe) hear() {
	b := make([]byte, 200)
	for {
		select {
		case <-p.stop:
			return
		default:
		}
		_ = p.conn.SetReadDeadline(time.Now().Add(time.Second))
		n, err := p.conn.Read(b)
		if err != nil { // or nobody is there, as the network says
			continue
		}
		words := strings.Fields(string(b[:n]))
		if len(words) < 2 {
			continue
		}
		asked, ok := Asked(words[len(words)-1])
		if !ok {
			continue
		}
		p.mu.Lock()
		p.all = append(p.all, answered{asked, time.Now(), words[0]})
		p.mu.Unlock()
	}
}

// Asked is when the question of a number was asked.
func Asked(number string) (time.Time, bool) {
	n, err := strconv.ParseInt(number, 10, 64)
	return time.Unix(0, n), err == nil
}

// Gap is the longest time without an answer since a time.
func (p *Probe) Gap(since time.Time) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := since
	for _, a := range p.all {
		if a.at.After(since) {
			longest, last = max(longest, a.at.Sub(last)), a.at
		}
	}
	return max(longest, time.Since(last))
}

// By counts the answers that somebody gave to what was asked since a time.
func (p *Probe) By(name string, since time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.all {
		if a.by == name && a.asked.After(since) {
			n++
		}
	}
	return n
}

// Stop ends it.
func (p *Probe) Stop() error {
	close(p.stop)
	p.both.Wait()
	return p.conn.Close()
}
