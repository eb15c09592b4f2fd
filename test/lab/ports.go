package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// The ports that FreeAddress draws from. Linux gives connections theirs from 32768 on (ip_local_port_range), and while
// a server is down a client that calls it again and again may get the very port that it calls: the server would not
// come back.
const (
	lowest = 10000
	ports  = 20000
)

// FreeAddress is an address and port of this machine's loopback on which nobody listens and from which nobody
// connects, for a program that is told where to listen, and may be ended and started again.
func FreeAddress() (string, error) {
	var errs []error
	for range 20 {
		address := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(ports))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// Free is a FreeAddress for a test, which fails where there is none.
func Free(t testing.TB) string {
	t.Helper()
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
