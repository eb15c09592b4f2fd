package admin

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// caller is who asks, and what he may do.
type caller struct {
	actor string // for events
	role  api.Role

	account string    // what he may see and touch is this account's, with the role of one account
	since   time.Time // when that was created: one of the same name that is created later is another

	// until ends when he may no more: his token was removed. nil: never.
	until context.Context
}

type callerKey struct{}

// callerIn is who asks; nobody with no role, where permitted has not let him in.
func callerIn(ctx context.Context) *caller {
	if who, ok := ctx.Value(callerKey{}).(*caller); ok {
		return who
	}
	return &caller{}
}

// permitted serves only those who may ask, and names them for the events of what they do.
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

// ownSite refuses what changes anything where a page of another site has the browser ask, which shows its user's
// certificate by itself. Programs do not say from where they ask, and are served. Whoever reads what is for the edge is
// taken for it, and gets its questions, so that reading counts as a change there.
func (s *Server) ownSite(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := *r
		if r.URL.Path == api.GetEdge.Path || r.URL.Path == api.GetLAN.Path {
			asked.Method = http.MethodPost
		}
		if err := origin.Check(&asked); err != nil {
			s.log.WithField("peer", r.RemoteAddr).WithField("path", pathOf(r)).
				Warn("refused a change that a page of another site asked for: " + err.Error())
			s.refuse(w, r, forbidden("this was sent by another site, and not by Berth's page; nothing was changed"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// callerOf finds out who asks: over TLS by what was sent, else by the kernel's word on the process at the other end. A
// connection that is neither has no peer, and is refused.
func (s *Server) callerOf(r *http.Request) (*caller, *api.Problem) {
	if r.TLS != nil {
		return s.remoteCaller(r)
	}
	return peerOf(r.Context()).caller(s.cfg.GID, s.cfg.ReadGID)
}

// turnAway refuses somebody and ends the connection, so that each guess costs a new one, and is one line in the log.
// What was sent is not logged: it may be a secret with a slip in it.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	s.log.WithField("peer", r.RemoteAddr).WithField("code",
		p.Code).Warn("refused a stranger on the admin API: " + p.Detail)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="berth"`)
	}
	w.Header().Set("Connection", "close")
	s.refuse(w, r, p)
}

// caller tells what a peer may do. The mode of the socket's file says nearly the same; this holds where somebody has
// changed that, or has made the socket for us.
func (p *peer) caller(gid, readGID int) (*caller, *api.Problem) {
	switch {
	case p == nil || p.err != nil:
		return nil, forbidden("the kernel does not say who you are")
	case p.uid == 0, p.uid == os.Geteuid(), gid >= 0 && p.in(gid):
		return &caller{actor: p.actor(), role: api.RoleAdmin}, nil
	case readGID > 0 && p.in(readGID):
		return &caller{actor: p.actor(), role: api.RoleReadOnly}, nil
	}
	return nil, forbidden(fmt.Sprintf("user %d may not use Berth's admin socket: run the command as root, or join the "+
		"group berth and log in again", p.uid))
}

// in tells whether the peer has a group.
func (p *peer) in(gid int) bool { return p.gid == gid || slices.Contains(p.groups, gid) }

// mayCall refuses a change to those who may only look, all but their own to those who ask for one account, and
// everything to those of whom nothing is known.
func mayCall(ctx context.Context, r route) *api.Problem {
	who := callerIn(ctx)
	switch {
	case who.role == api.RoleAccount:
		return who.mayCallForAccount(r)
	case who.role == api.RoleAdmin, who.role == api.RoleReadOnly && r.Reads():
		return nil
	}
	if who.role == "" {
		return forbidden("it is not known who you are")
	}
	return forbidden(fmt.Sprintf("%s may look and change nothing, and %s %s is for admins: ask somebody of the group "+
		"berth, or use a token with the role admin",
		who.actor, r.Method, r.Path))
}

func forbidden(detail string) *api.Problem {
	return &api.Problem{Status: http.StatusForbidden, Code: api.CodeForbidden, Detail: detail}
}

func unauthenticated(detail string) *api.Problem {
	return &api.Problem{Status: http.StatusUnauthorized, Code: api.CodeUnauthenticated, Detail: detail}
}
