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
	"berth/internal/ipam/ipamtest"
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
	// Of 990 are the admins, of 991 those who may look.
	for c := range ipamtest.Rows(6, `
		root | 0 | 0 | -1 | -1 | changes
		root in the group for looking | 0 | 991 | 990 | 991 | changes
		our own user | own | 4242 | -1 | -1 | changes
		a member | 4242 | 990 | 990 | 991 | changes
		a member by another group | 4242 | 4242 4 990 | 990 | 991 | changes
		a reader | 4242 | 991 | 990 | 991 | looks
		a reader by another group | 4242 | 4242 4 991 | 990 | 991 | looks
		a member of both | 4242 | 991 990 | 990 | 991 | changes
		a reader where there is no group of admins | 4242 | 991 | -1 | 991 | looks
		a reader where there is no such group | 4242 | 991 | 990 | -1
		root's group is none for looking | 4242 | 0 | 990 | 0
		a stranger | 4242 | 4242 4 | 990 | 991
		unknown | | | 990 | 991
		no peer | - | | 990 | 991
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
		t.Run(c[0], func(t *testing.T) {
			h := start(t, func(s *Server) {
				s.cfg.GID, s.cfg.ReadGID = number(c[3]), number(c[4])
				s.cfg.Save = func(context.Context) (api.SavedState, error) { return api.SavedState{}, nil }
				new(watcher).join(s)
			})
			for _, r := range someRequests {
				req := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body))
				req.Header.Set("Content-Type", api.JSONType)
				req.Header.Set("Authorization", "Bearer whatever") // is for TLS
				req = req.WithContext(context.WithValue(req.Context(), peerKey{}, p))
				answer := timedRecorder{httptest.NewRecorder()}
				h.server.handlers.ServeHTTP(answer, req)
				want := http.StatusForbidden
				if c[5] == "changes" || r.looks && c[5] == "looks" {
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
