package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// The ports that FreeAddress draws from. Linux assigns ports from 32768 on to connections (ip_local_port_range).
// While a server is down, a client that keeps calling may get the very port that it calls, and the server could
// not come back.
const (
	lowest = 10000
	ports  = 20000
)

// FreeAddress is a free address and port on this machine's loopback. No program listens on it or connects from it,
// so a program may listen there, end, and start again.
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

// Free is a FreeAddress for a test. It ends the test if there is none.
func Free(t testing.TB) string {
	t.Helper()
	address, err := FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
