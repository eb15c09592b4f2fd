package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Provider brings a host's edge to a state, and keeps it there.
type Provider interface {
	// Set applies the whole state. To apply it again is harmless. Addresses that cannot be applied are told as
	// Failures while the others are; with any other error nothing may be relied on, and Set is to be called again.
	Set(ctx context.Context, s State) error
	// Renew moves Until of the state that was set last. It fails with ErrExpired once that has passed: then the state
	// is to be asked for anew, since another host may have been given the addresses, and Set.
	Renew(ctx context.Context, until Moment) error
	// Enabled: something of this provider is in place.
	Enabled(ctx context.Context) (bool, error)
	// Remove takes away everything that Set has ever put in place.
	Remove(ctx context.Context) error
}

// ErrExpired is why Renew refuses.
var ErrExpired = errors.New("the time until which this host may answer has passed: ask for the wanted state again")

// Failure is one address that could not be applied.
type Failure struct {
	Address netip.Addr
	Err     error
}

func (f *Failure) Error() string { return fmt.Sprintf("elastic address %s: %v", f.Address, f.Err) }

func (f *Failure) Unwrap() error { return f.Err }

// Failures are the addresses of an error of Set, and whether it is about them alone.
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

// Notice is something that a provider met and that a person may want to know.
type Notice struct {
	Kind    NoticeKind
	Address netip.Addr       // Contested
	Device  string           // Contested
	MAC     net.HardwareAddr // Contested: who answered
	Text    string           // Repaired: what had gone; Failed: why
}

// NoticeKind is what a Notice is about.
type NoticeKind string

const (
	// Repaired: something that was in place had been flushed, deleted or changed by others, and is in place again.
	Repaired NoticeKind = "repaired"
	// Failed: a repair could not be made.
	Failed NoticeKind = "failed"
	// Contested: another machine answered for an address that is here.
	Contested NoticeKind = "contested"
)
