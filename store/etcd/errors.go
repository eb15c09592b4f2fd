package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"berth/store"
)

// isAway reports whether there was no answer, and one may come later.
func isAway(err error) bool { return isSilence(err) && !isHandshake(err) }

// isSilence reports whether an error means that there was no answer, so that the request may have been done.
func isSilence(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.Aborted:
		return true
	}
	return false
}

// code returns gRPC's code of an error, or OK if it is not gRPC's.
func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return codes.OK
}

// isTooMuch reports whether a transaction has too many operations or bytes for a member of etcd.
func isTooMuch(err error) bool {
	return errors.Is(err, rpctypes.ErrTooManyOps) || errors.Is(err, rpctypes.ErrRequestTooLarge) ||
		err != nil && strings.Contains(err.Error(), "message larger than max")
}

// isHandshake reports whether a server answers but no connection can be agreed on. gRPC tells that only in its text.
func isHandshake(err error) bool {
	text := err.Error()
	for _, part := range []string{"x509:", "tls:", "handshake failed: EOF", "error reading server preface: http2:"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// explain converts an error of the client for people. After the store was opened, anything that keeps etcd from
// answering is store.ErrAway: nothing was written, and the cause may be repaired.
func (m *members) explain(err error) error {
	where := strings.Join(m.cfg.Endpoints, ", ")
	text := said{err}
	switch {
	case isAway(err):
		return fmt.Errorf("%w: etcd at %s does not answer (%w): check whether it runs, has a quorum, and is "+
			"reachable from this host", store.ErrAway, where, text)
	case isHandshake(err):
		return m.refused(fmt.Errorf("etcd at %s refuses the connection (%w): check http or https in "+
			"--etcd-endpoints, and --etcd-cacert, --etcd-cert and --etcd-key", where, text))
	case isLogin(err) && m.cfg.User == "":
		return m.refused(fmt.Errorf("etcd at %s wants a user (%w): give --etcd-user and --etcd-password-file", where,
			text))
	case isLogin(err):
		return m.refused(fmt.Errorf("etcd at %s refuses the user %q (%w): check --etcd-user and "+
			"--etcd-password-file, and the user's rights under the prefix %q", where, m.cfg.User, text,
			m.cfg.Prefix))
	case strings.Contains(text.Error(), "space exceeded"):
		return fmt.Errorf("%w: %w: etcd at %s has used up its quota (%w): compact and defragment it, then disarm "+
			"its alarm",
			store.ErrAway, store.ErrNoSpace, where, text)
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: etcd at %s refuses a request of this size (%w): start its members with a larger "+
			"--max-request-bytes", store.ErrTooLarge, where, text)
	case code(err) == codes.OK: // not an error of etcd
		return err
	}
	return fmt.Errorf("etcd at %s refuses a request (%w)", where, text)
}

func (m *members) refused(err error) error {
	if m.opened.Load() {
		return fmt.Errorf("%w: %w", store.ErrAway, err)
	}
	return err
}

// isLogin reports whether etcd refused the user, or the user's request.
func isLogin(err error) bool {
	switch code(err) {
	case codes.Unauthenticated, codes.PermissionDenied:
		return true
	case codes.InvalidArgument, codes.FailedPrecondition:
		text := err.Error()
		return strings.Contains(text, "auth") || strings.Contains(text, "user name")
	}
	return false
}

// said is an error without the words that gRPC adds.
type said struct{ err error }

func (s said) Unwrap() error { return s.err }

func (s said) Error() string {
	var e rpctypes.EtcdError
	if errors.As(s.err, &e) {
		return e.Error()
	}
	if st, ok := status.FromError(s.err); ok {
		return st.Message()
	}
	return s.err.Error()
}

// speaksTLS reports whether a server that does not answer plainly wants TLS.
func speaksTLS(ctx context.Context, endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // nothing is sent
	c, err := d.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return strings.Contains(err.Error(), "remote error: tls:") // the server wants a certificate
	}
	_ = c.Close()
	return true
}
