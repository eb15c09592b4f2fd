package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"strconv"
	"strings"
	"testing"

	"berth/internal/admin/api"
)

// as is the context of a request of somebody with a role.
func as(ctx context.Context, role api.Role) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{actor: "somebody", role: role})
}

// someRequests are those of everybody and those of admins.
var someRequests = []struct {
	method, path, body string
	looks              bool
}{
	{"GET", "/v1/subnets", "", true}, {"HEAD", "/v1/subnets", "", true}, {"POST", "/v1/fsck", "", false},
	{"POST", "/v1/store/save", "", false}, {"GET", "/v1/tokens", "", false},
	{"GET", "/v1/who?name=web", "", true}, {"GET", "/v1/check", "", true}, {"POST", "/v1/check", "{}", false},
	{"PUT", "/v1/witness", "{}", false},
	{"POST", "/v1/edits", `{"edits": [{"op": "owner.release", "owner": "web"}]}`, false},
}

// TestSocketRoles: who may look and who may change on the socket, by what the kernel says of the peer.
func TestSocketRoles(t *testing.T) {
	const group, readGroup = 990, 991
	for _, c := range []struct {
		name         string
		peer         *peer
		gid, readGID int
		looks        bool
		changes      bool
	}{
		{"root", &peer{uid: 0}, -1, -1, true, true},
		{"root in the group for looking", &peer{uid: 0, gid: readGroup}, group, readGroup, true, true},
		{"our own user", &peer{uid: os.Geteuid(), gid: 4242}, -1, -1, true, true},
		{"a member", &peer{uid: 4242, gid: group}, group, readGroup, true, true},
		{"a member by another group", &peer{uid: 4242, gid: 4242, groups: []int{4, group}}, group, readGroup, true,
			true},
		{"a reader", &peer{uid: 4242, gid: readGroup}, group, readGroup, true, false},
		{"a reader by another group", &peer{uid: 4242, gid: 4242, groups: []int{4, readGroup}}, group, readGroup, true,
			false},
		{"a member of both", &peer{uid: 4242, gid: readGroup, groups: []int{group}}, group, readGroup, true, true},
		{"a reader where there is no group of admins", &peer{uid: 4242, gid: readGroup}, -1, readGroup, true, false},
		{"a reader where there is no such group", &peer{uid: 4242, gid: readGroup}, group, -1, false, false},
		{"root's group is none for looking", &peer{uid: 4242, gid: 0}, group, 0, false, false},
		{"a stranger", &peer{uid: 4242, gid: 4242, groups: []int{4}}, group, readGroup, false, false},
		{"unknown", &peer{err: errors.New("no credentials")}, group, readGroup, false, false},
		{"no peer", nil, group, readGroup, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := start(t, func(s *Server) {
				s.cfg.GID, s.cfg.ReadGID = c.gid, c.readGID
				s.cfg.Save = func(context.Context) (api.SavedState, error) { return api.SavedState{}, nil }
				new(watcher).join(s)
			})
			for _, r := range someRequests {
				req := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body))
				req.Header.Set("Content-Type", api.JSONType)
				req.Header.Set("Authorization", "Bearer whatever") // is for TLS
				req = req.WithContext(context.WithValue(req.Context(), peerKey{}, c.peer))
				answer := timedRecorder{httptest.NewRecorder()}
				h.server.handlers.ServeHTTP(answer, req)
				want := http.StatusForbidden
				if c.changes || r.looks && c.looks {
					want = http.StatusOK
				}
				if answer.Code != want {
					t.Errorf("%s %s: status %d: %s", r.method, r.path, answer.Code, answer.Body)
				}
			}
		})
	}
}

// TestNobodyIsLetIn: a request that has passed no door may do nothing.
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
