package admin

import (
	"context"
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam/ipamtest"
)

// as is the context of a request from a caller with a role.
func as(ctx context.Context, role api.Role) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{actor: "somebody", role: role})
}

// TestSocketRoles: on the socket, the user and groups that the kernel reports decide who may read or change.
func TestSocketRoles(t *testing.T) {
	h := start(t, nil)
	// Members of group 990 are admins, members of 991 may read.
	for c := range ipamtest.Rows(7, `
		root | 0 | 0 | -1 | -1 | 200 | 200
		root in the group for looking | 0 | 991 | 990 | 991 | 200 | 200
		our own user | own | 4242 | -1 | -1 | 200 | 200
		a member | 4242 | 990 | 990 | 991 | 200 | 200
		a member by another group | 4242 | 4242 4 990 | 990 | 991 | 200 | 200
		a reader | 4242 | 991 | 990 | 991 | 200 | 403
		a reader by another group | 4242 | 4242 4 991 | 990 | 991 | 200 | 403
		a member of both | 4242 | 991 990 | 990 | 991 | 200 | 200
		a reader where there is no group of admins | 4242 | 991 | -1 | 991 | 200 | 403
		a reader where there is no such group | 4242 | 991 | 990 | -1 | 403 | 403
		root's group is none for looking | 4242 | 0 | 990 | 0 | 403 | 403
		a stranger | 4242 | 4242 4 | 990 | 991 | 403 | 403
		unknown | | | 990 | 991 | 403 | 403
		no peer | - | | 990 | 991 | 403 | 403
	`) {
		p := &peer{uid: os.Geteuid()}
		switch c[1] {
		case "":
			p = &peer{err: errors.New("no credentials")}
		case "-":
			p = nil
		case "own":
		default:
			p.uid = number(c[1])
		}
		for i, gid := range strings.Fields(c[2]) {
			if i == 0 {
				p.gid = number(gid)
			} else {
				p.groups = append(p.groups, number(gid))
			}
		}
		h.server.cfg.GID, h.server.cfg.ReadGID = number(c[3]), number(c[4])
		as := func(ctx context.Context) context.Context { return context.WithValue(ctx, peerKey{}, p) }
		t.Run(c[0], func(t *testing.T) {
			h.through(h.server.handlers, as).plays(t, `
				# the header is for TLS
				[Authorization: Bearer whatever] GET /v1/subnets -> $LOOK
				HEAD /v1/subnets -> $LOOK
				POST /v1/fsck -> $CHANGE
				GET /v1/tokens -> $CHANGE
			`, "$LOOK", c[5], "$CHANGE", c[6])
		})
	}
}

// TestNobodyIsLetIn: a request that has not been authenticated may do nothing.
func TestNobodyIsLetIn(t *testing.T) {
	h := start(t, nil)
	for _, r := range h.server.routes() {
		if p := mayCall(t.Context(), r); p == nil || p.Code != api.CodeForbidden {
			t.Errorf("%s %s: %v", r.Method, r.Path, p)
		}
	}
}

func TestPeerNames(t *testing.T) {
	me, err := user.Current()
	must(t, err)
	for uid, want := range map[int]string{
		os.Geteuid():  me.Username + " (uid " + me.Uid + ")",
		2_000_000_123: "uid " + strconv.Itoa(2_000_000_123), // has no name
	} {
		p := &peer{uid: uid}
		if got := p.actor(); got != want {
			t.Errorf("uid %d is %q, want %q", uid, got, want)
		}
	}
}
