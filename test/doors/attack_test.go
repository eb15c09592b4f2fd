package doors

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// attack is what a hostile or broken client does. begin returns when the attack is at its worst. The attack
// continues until the crowd ends.
type attack struct {
	name  string
	begin func(*crowd)
}

// The numbers of connections and of bytes. The silent connections exceed the places of any door, even under
// -short. With TLS each connection costs both sides some milliseconds.
const (
	manySilent = 10_000
	someSilent = 3_000
	manySlow   = 2_000
	manyTLS    = 400
	oneGB      = 1 << 30
)

func attacksOn(d door) (all []attack) {
	if d.idle {
		all = append(all, attack{"silent", func(c *crowd) { c.open(silent(), func(net.Conn) {}) }})
	}
	if d.flood != nil {
		all = append(all, attack{"a flood", func(c *crowd) { c.open(4, c.floods) }})
	}
	if d.begin != "" {
		all = append(all, attack{"slow senders", func(c *crowd) {
			c.open(c.many(), func(conn net.Conn) { drip(conn, c.begin) })
		}})
	}
	for _, b := range d.bodies {
		all = append(all,
			attack{b.request + ", slow", func(c *crowd) {
				begin := c.post(b, 1_000_000) + b.begin + strings.Repeat(b.again, 900_000/len(b.again))
				c.open(c.many(), func(conn net.Conn) { drip(conn, begin) })
			}},
			attack{b.request + ", 1 GB", func(c *crowd) { c.huge(b, oneGB, b.again) }},
			attack{b.request + ", 1 GB in chunks", func(c *crowd) { c.huge(b, -1, b.again) }},
			attack{b.request + ", 1 GB of one text", func(c *crowd) { c.huge(b, -1, `"`+strings.Repeat("x", 1<<20)) }},
			attack{b.request + ", deep", func(c *crowd) { c.deep(b) }})
	}
	for _, path := range d.reads {
		all = append(all, attack{"GET " + path + ", unread", func(c *crowd) {
			asked := strings.Repeat(c.request("GET "+path)+"\r\n", 100)
			c.open(c.many(), func(conn net.Conn) { _, _ = io.WriteString(conn, asked) })
		}})
	}
	return all
}

// crowd are the connections of an attack.
type crowd struct {
	*daemon
	door
	wg sync.WaitGroup

	mu      sync.Mutex
	conns   []net.Conn
	opened  int
	refused int
}

func (c *crowd) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d connections, %d refused", c.opened, c.refused)
}

func silent() int {
	if testing.Short() {
		return someSilent
	}
	return manySilent
}

func (c *crowd) many() int {
	if c.head != nil {
		return manyTLS
	}
	return manySlow
}

// request is a request's head without its end.
func (c *crowd) request(line string) string {
	head := line + " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	if c.head != nil {
		head += c.head(c.daemon)
	}
	return head
}

// post is the head of a request with a body of length bytes; negative: in chunks.
func (c *crowd) post(b body, length int) string {
	head := c.request(b.request) + "Content-Type: " + b.form + "\r\n"
	if length < 0 {
		return head + "Transfer-Encoding: chunked\r\n\r\n"
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n", head, length)
}

// connect connects, and returns nil if it is refused.
func (c *crowd) connect(i int) net.Conn {
	conn, err := c.dial(c.daemon, i)
	for ; errors.Is(err, syscall.EAGAIN); conn, err = c.dial(c.daemon, i) { // the listen queue is full
		time.Sleep(time.Millisecond)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.refused++
		return nil
	}
	c.opened++
	c.conns = append(c.conns, conn)
	return conn
}

// open connects n times, and calls do with each connection.
func (c *crowd) open(n int, do func(net.Conn)) {
	for i := range n {
		if conn := c.connect(i); conn != nil {
			c.wg.Go(func() { do(conn) })
		}
	}
}

// end closes all connections, and waits until none is in use.
func (c *crowd) end() {
	c.mu.Lock()
	conns := c.conns
	c.conns = nil
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
	c.wg.Wait()
}

// drip sends a beginning at once and then one byte at a time, until it is cut off.
func drip(conn net.Conn, begin string) {
	for text := begin; ; text = "a" {
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
		time.Sleep(time.Second) // the attack itself is slow; no one waits for it
	}
}

// floods sends one datagram after another until it is cut off.
func (c *crowd) floods(conn net.Conn) {
	for {
		if _, err := conn.Write(c.flood); errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// huge sends 1 GB in four requests at once, until they are refused or cut off.
func (c *crowd) huge(b body, length int, again string) {
	piece := strings.Repeat(again, max(1, 1<<20/len(again)))
	if length < 0 {
		piece = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
		b.begin = fmt.Sprintf("%x\r\n%s\r\n", len(b.begin), b.begin)
	}
	var all sync.WaitGroup
	for i := range 4 {
		conn := c.connect(i)
		if conn == nil {
			continue
		}
		all.Go(func() { c.send(conn, c.post(b, length)+b.begin, piece) })
	}
	all.Wait()
}

// send sends a beginning and pieces, 1 GB in all, until it is answered or cut off.
func (c *crowd) send(conn net.Conn, begin, piece string) {
	defer conn.Close()
	c.wg.Go(func() { _, _ = io.Copy(io.Discard, conn) })
	w := bufio.NewWriter(conn)
	_, err := w.WriteString(begin)
	for sent := 0; err == nil && sent < oneGB; sent += len(piece) {
		_, err = w.WriteString(piece)
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		c.t.Error("1 GB was taken")
	}
}

// deep sends deeply nested JSON over many connections.
func (c *crowd) deep(b body) {
	const size = 1_000_000
	texts := []string{strings.Repeat("[", size), strings.Repeat(`{"a":`, size/5), b.begin + strings.Repeat(b.again,
		size/len(b.again))}
	c.open(64, func(conn net.Conn) {
		for _, text := range texts {
			if _, err := io.WriteString(conn, c.post(b, len(text))+text); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, conn)
	})
}
