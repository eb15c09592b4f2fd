package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Provider applies a State to a host's edge and keeps it applied.
type Provider interface {
	// Set applies the whole state. It may be repeated. It reports addresses that cannot be applied as Failures and
	// applies the others. After any other error the result is undefined, and Set must be called again.
	Set(ctx context.Context, s State) error
	// Renew changes Until of the last state. It fails with ErrExpired if that time has passed, because another host may
	// have the addresses. Then request the state again and call Set.
	Renew(ctx context.Context, until BootTime) error
	// Enabled reports whether anything of this provider is in place.
	Enabled(ctx context.Context) (bool, error)
	// Remove removes everything that Set has ever put in place.
	Remove(ctx context.Context) error
}

// ErrExpired is the error of a late Renew.
var ErrExpired = errors.New("this host's permission to answer for the addresses has expired; the edge must get the " +
	"wanted state from the daemon again")

// Failure is an address that could not be applied.
type Failure struct {
	Address netip.Addr
	Err     error
}

func (f *Failure) Error() string { return fmt.Sprintf("elastic address %s: %v", f.Address, f.Err) }

func (f *Failure) Unwrap() error { return f.Err }

// Failures returns the failed addresses in an error of Set. only reports whether the error contains nothing else.
func Failures(err error) (failed map[netip.Addr]error, only bool) {
	failed, only = map[netip.Addr]error{}, true
	var walk func(error)
	walk = func(err error) {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range several.Unwrap() {
				walk(e)
			}
			return
		}
		one := (*Failure)(nil)
		if !errors.As(err, &one) {
			only = false
			return
		}
		failed[one.Address] = one.Err
	}
	if err != nil {
		walk(err)
	}
	return failed, only
}

// Notice is an event at the provider that may interest a person.
type Notice struct {
	Kind    NoticeKind
	Address netip.Addr       // Contested
	Device  string           // Contested
	MAC     net.HardwareAddr // Contested: who answered
	Text    string           // Repaired: what was missing; Failed: the reason
}

// NoticeKind is the kind of a Notice.
type NoticeKind string

const (
	// Repaired: somebody removed or changed a part of the applied state, and it was restored.
	Repaired NoticeKind = "repaired"
	// Failed: a repair failed.
	Failed NoticeKind = "failed"
	// Contested: another machine answered for an address of this host.
	Contested NoticeKind = "contested"
)
