package admin

import (
	"context"
	"net/http"
	"os"
	"slices"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// caller is who sends a request, and what the caller may do.
type caller struct {
	actor string // for events
	role  api.Role

	account string    // with the role of one account: the only account that the caller may see and change
	since   time.Time // when that account was created; a later account of the same name is another one

	// until ends when the caller's token is removed. nil: never.
	until context.Context
}

type callerKey struct{}

// callerIn returns the caller of a request. Without permitted it is a caller without name and role.
func callerIn(ctx context.Context) *caller {
	if who, ok := ctx.Value(callerKey{}).(*caller); ok {
		return who
	}
	return &caller{}
}

// permitted serves only callers with access, and names them for the events of their changes.
func (s *Server) permitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, refusal := s.callerOf(r)
		if refusal != nil {
			s.turnAway(w, r, refusal)
			return
		}
		recognize(r.Context(), who)
		ctx := context.WithValue(ipam.WithActor(r.Context(), who.actor), callerKey{}, who)
		if who.role == api.RoleAccount {
			ctx = ipam.WithAccount(ctx, who.account)
		}
		if who.until != nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(who.until, cancel)()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// ownSite refuses a change that a page of another site makes through the browser, which sends its user's certificate on
// its own. Programs send no origin and are served. On the paths of the edge, reading counts as a change, because the
// reader is taken for the edge and gets its questions.
func (s *Server) ownSite(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := *r
		if r.URL.Path == api.GetEdge.Path || r.URL.Path == api.GetLAN.Path {
			asked.Method = http.MethodPost
		}
		if err := origin.Check(&asked); err != nil {
			s.log.WithField("peer", r.RemoteAddr).WithField("path", pathOf(r)).
				Warn("refused a change from a page of another site: " + err.Error())
			s.refuse(w, r, forbidden("another site sent this request, not Berth's page; nothing was changed"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// callerOf finds the caller: over TLS by the certificate or token, on the socket by the process that the kernel
// reports. A connection with neither has no peer and is refused.
func (s *Server) callerOf(r *http.Request) (*caller, *api.Problem) {
	if r.TLS != nil {
		return s.remoteCaller(r)
	}
	return peerOf(r.Context()).caller(s.cfg.GID, s.cfg.ReadGID)
}

// turnAway refuses a caller and closes the connection. So each guess costs a new connection and is one line in the log.
// It does not log what was sent, because that may be a mistyped secret.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	s.log.WithField("peer", r.RemoteAddr).WithField("code",
		p.Code).Warn("refused a stranger on the admin API: " + p.Detail)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="berth"`)
	}
	w.Header().Set("Connection", "close")
	s.refuse(w, r, p)
}

// caller returns the caller for a peer. The mode of the socket's file enforces nearly the same. This check also holds
// if somebody changed the mode or created the socket for us.
func (p *peer) caller(gid, readGID int) (*caller, *api.Problem) {
	switch {
	case p == nil || p.err != nil:
		return nil, forbidden("the kernel does not tell Berth which user you are")
	case p.uid == 0, p.uid == os.Geteuid(), gid >= 0 && p.in(gid):
		return &caller{actor: p.actor(), role: api.RoleAdmin}, nil
	case readGID > 0 && p.in(readGID):
		return &caller{actor: p.actor(), role: api.RoleReadOnly}, nil
	}
	return nil, forbidden("user %d may not use Berth's admin socket: run the command as root, or join the "+
		"group berth and log in again", p.uid)
}

// in reports whether the peer is in a group.
func (p *peer) in(gid int) bool { return p.gid == gid || slices.Contains(p.groups, gid) }

// mayCall refuses changes to read-only callers, and everything to unknown callers. A caller for one account may only
// call the account's operations.
func mayCall(ctx context.Context, r route) *api.Problem {
	who := callerIn(ctx)
	switch {
	case who.role == api.RoleAccount:
		return who.mayCallForAccount(r)
	case who.role == api.RoleAdmin, who.role == api.RoleReadOnly && r.Reads():
		return nil
	}
	if who.role == "" {
		return forbidden("Berth cannot tell who you are")
	}
	return forbidden("%s may only read, and %s %s is for admins: ask somebody of the group "+
		"berth, or use a token with the role admin",
		who.actor, r.Method, r.Path)
}

func forbidden(format string, args ...any) *api.Problem {
	return problem(http.StatusForbidden, api.CodeForbidden, format, args...)
}

func unauthenticated(format string, args ...any) *api.Problem {
	return problem(http.StatusUnauthorized, api.CodeUnauthenticated, format, args...)
}
