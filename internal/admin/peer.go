package admin

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peer is the process at the other end of a connection, as the kernel recorded it at the connect (unix(7),
// SO_PEERCRED). It is the connection's net.Addr, because wrappers of the connection preserve that.
type peer struct {
	uid, gid, pid int
	groups        []int // the supplementary ones
	err           error // why the peer is unknown

	once sync.Once
	name string // of the user, for actor
}

// Network implements net.Addr.
func (p *peer) Network() string { return "unix" }

func (p *peer) String() string {
	if p.err != nil {
		return "unknown"
	}
	return fmt.Sprintf("pid %d, uid %d", p.pid, p.uid)
}

// actor names the peer's user in events: "root (uid 0)", or "uid 1000" if the system has no name for the user.
func (p *peer) actor() string {
	p.once.Do(func() {
		p.name = "uid " + strconv.Itoa(p.uid)
		if u, err := user.LookupId(strconv.Itoa(p.uid)); err == nil {
			p.name = fmt.Sprintf("%s (%s)", u.Username, p.name)
		}
	})
	return p.name
}

// peerListener records the peer of each connection.
type peerListener struct{ net.Listener }

// peerConn is a connection whose remote address is its peer.
type peerConn struct {
	net.Conn
	peer *peer
}

// Accept implements net.Listener.
func (l *peerListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &peerConn{c, lookUpPeer(c)}, nil
}

// NetConn returns the connection itself.
func (c *peerConn) NetConn() net.Conn { return c.Conn }

// RemoteAddr implements net.Conn.
func (c *peerConn) RemoteAddr() net.Addr { return c.peer }

func lookUpPeer(c net.Conn) *peer {
	unixConn, ok := c.(*net.UnixConn)
	if !ok {
		return &peer{err: fmt.Errorf("%s is not a unix socket", c.LocalAddr().Network())}
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return &peer{err: err}
	}
	p := &peer{}
	if err := raw.Control(func(fd uintptr) { p.err = p.read(int(fd)) }); err != nil {
		return &peer{err: err}
	}
	return p
}

func (p *peer) read(fd int) error {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	p.uid, p.gid, p.pid = int(cred.Uid), int(cred.Gid), int(cred.Pid)
	p.groups = peerGroups(fd)
	return nil
}

// peerGroups returns the supplementary groups (SO_PEERGROUPS, Linux 4.13), or none if the kernel does not support that.
// It does not use /etc/group, because a process keeps the groups of its login.
func peerGroups(fd int) []int {
	buf := make([]uint32, 64)
	for {
		size := uint32(len(buf) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)), 0)
		if errno == unix.ERANGE && int(size) > len(buf)*4 {
			buf = make([]uint32, size/4)
			continue
		}
		if errno != 0 {
			return nil
		}
		groups := make([]int, 0, size/4)
		for _, gid := range buf[:size/4] {
			groups = append(groups, int(gid))
		}
		return groups
	}
}

type peerKey struct{}

// withPeer is the ConnContext of an http.Server.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	p, _ := c.RemoteAddr().(*peer)
	return context.WithValue(ctx, peerKey{}, p)
}

func peerOf(ctx context.Context) *peer {
	p, _ := ctx.Value(peerKey{}).(*peer)
	return p
}
