package client

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNobodyAnswers: the client does not wait forever for a daemon that accepts connections and never answers. The
// error says what to do.
func TestNobodyAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "admin.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := New(socket)
	defer c.Close()
	c.late = 50 * time.Millisecond
	_, err = c.Version(t.Context())
	if !errors.Is(err, errLate) || !strings.Contains(err.Error(), socket) || !strings.Contains(err.Error(), "ss -xp") {
		t.Errorf("%v", err)
	}
}

// TestAnswersMayLast: an answer that has begun may take any time. A backup does.
func TestAnswersMayLast(t *testing.T) {
	c := New("admin.sock")
	defer c.Close()
	if c.http.Timeout != 0 {
		t.Errorf("the client waits for %s only", c.http.Timeout)
	}
}
