package lab

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Probe sends one datagram after another without waiting for answers, and records who answered each, and when. An
// answer contains the answerer's name, any other words, and the number of the question.
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

// NewProbe asks over a connection at an interval. Stop ends it and closes the connection.
func NewProbe(conn net.Conn, every time.Duration) *Probe {
	p := &Probe{conn: conn, stop: make(chan struct{})}
	p.both.Go(func() { p.ask(every) })
	p.both.Go(p.hear)
	return p
}

// ask uses the time as the number, so no two probes share one.
func (p *Probe) ask(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			_, _ = fmt.Fprintf(p.conn, "%d\n", time.Now().UnixNano()) // the server may be away now
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
		if err != nil { // or the network reports that the server is away
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

// Asked is the time when the question with a number was asked.
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

// By counts the answers by name to questions asked since a time.
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

// Stop ends the probe.
func (p *Probe) Stop() error {
	close(p.stop)
	p.both.Wait()
	return p.conn.Close()
}
