package nft

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"berth/internal/edge"
	"berth/internal/edge/announce"

	"sigs.k8s.io/knftables"
)

// Config is the configuration of a Provider.
type Config struct {
	// Mark and Mask are the engine's option bridge-accept-fwmark. With the nftables backend, the engine admits packets
	// with this mark into bridges. A zero mask marks nothing.
	Mark, Mask uint32
	// Tell receives notices and must not block; nil: none.
	Tell func(edge.Notice)
}

// Counts counts events since New.
type Counts struct {
	Repaired  int // repairs of what others had removed
	Announced int // frames of announcements
	Contested int // claims of other machines to an address of this host
	Forgotten int // removed connections that contradicted a state
	Expired   int // late renewals
}

// Provider implements edge.Provider.
type Provider struct {
	config    Config
	text      knftables.Interface
	kernel    kernel
	docker    dockerUser
	announcer *announce.Announcer
	egress    bool // the kernel can block outgoing frames on a device

	mu       sync.Mutex
	state    *edge.State // nil before the first Set
	want     contents
	have     contents              // the kernel's contents at the generation known
	known    uint32                // zero: the kernel's contents are unknown
	here     map[netip.Addr]string // the addresses that this host answers for, with their devices
	former   []edge.Range          // the kernel's ranges before the last change
	subnets  map[netip.Prefix]int  // the number of guests in each subnet
	whole    bool                  // the last change was completed
	failed   bool                  // except for some addresses
	devices  map[int]string
	live     map[place]elements // the last live elements
	ticket   uint32
	accepted []edge.Range // by the engine

	stray   atomic.Bool // addresses on devices may have changed
	watched atomic.Bool // such changes cause notifications

	allowed   atomic.Pointer[allowance]
	repaired  atomic.Int64
	forgotten atomic.Int64
	expired   atomic.Int64
}

// New finds out what this host supports. It changes nothing.
func New(config Config) (*Provider, error) {
	text, err := knftables.New("", "", knftables.NoObjectCommentEmulation)
	if err != nil {
		return nil, fmt.Errorf("nftables cannot be used here (it needs the package nftables, and CAP_NET_ADMIN): %w",
			err)
	}
	k, err := newKernel()
	if err != nil {
		return nil, err
	}
	if config.Tell == nil {
		config.Tell = func(edge.Notice) {}
	}
	p := &Provider{config: config, text: text, kernel: k, docker: findDockerUser()}
	p.stray.Store(true)
	p.allowed.Store(&allowance{})
	p.egress = p.holdsDevices()
	p.announcer = announce.New(announce.Config{Tell: config.Tell, Allowed: p.mayAnswer})
	return p, nil
}

// holdsDevices reports whether the kernel can filter outgoing frames of a device (since 5.16).
func (p *Provider) holdsDevices() bool {
	tx := p.text.NewTransaction()
	tx.Add(&knftables.Table{Family: knftables.NetDevFamily, Name: tableName})
	chain{name: "try", kind: knftables.FilterType, hook: knftables.EgressHook, device: "lo"}.write(tx,
		knftables.NetDevFamily)
	return p.text.Check(context.Background(), tx) == nil
}

// Close closes the provider's sockets. The rules stay.
func (p *Provider) Close() error { return p.announcer.Close() }

// Counts returns the current numbers.
func (p *Provider) Counts() Counts {
	announced, contested := p.announcer.Counts()
	return Counts{
		Repaired:  int(p.repaired.Load()),
		Announced: announced,
		Contested: contested,
		Forgotten: int(p.forgotten.Load()),
		Expired:   int(p.expired.Load()),
	}
}

// Set implements edge.Provider.
func (p *Provider) Set(ctx context.Context, s edge.State) error {
	s = inOrder(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	one, small := p.stepTo(s)
	var err error
	if small {
		err = p.checkStep(one)
	} else {
		err = s.Check()
	}
	if err != nil {
		return err
	}
	if p.state != nil { // first repair what others have changed, to report it separately
		_, err = p.check(ctx)
		if err != nil {
			return err
		}
	}
	first := p.state == nil
	if !small {
		one = step{come: s.Mappings}
	}
	if err := forgetMACs(one.come); err != nil {
		return err
	}
	if small && p.known != 0 && p.whole && !p.failed {
		p.have = p.want // the check found no difference
		return p.take(ctx, s, one)
	}
	p.setState(s)
	_, _, err = p.load(ctx)
	if err != nil {
		return err
	}
	change := deltaOf(p.have, p.want)
	touched := touchedBy(change)
	if first { // a process before this one may have ended between its transaction and the removal of connections
		touched = nil
	}
	return p.apply(ctx, change, touched)
}

// inOrder returns a state with its lists sorted by address.
func inOrder(s edge.State) edge.State {
	byFrom := func(a, b edge.Range) int { return a.From.Compare(b.From) }
	if !slices.IsSortedFunc(s.Ranges, byFrom) {
		s.Ranges = slices.Clone(s.Ranges)
		slices.SortFunc(s.Ranges, byFrom)
	}
	if !slices.IsSortedFunc(s.Mappings, byElastic) {
		s.Mappings = slices.Clone(s.Mappings)
		slices.SortFunc(s.Mappings, byElastic)
	}
	return s
}

func (p *Provider) setState(s edge.State) {
	s.Ranges, s.Mappings = slices.Clone(s.Ranges), slices.Clone(s.Mappings)
	p.state, p.want, p.here = &s, contentsOf(s), announced(s)
	p.subnets = map[netip.Prefix]int{}
	for _, m := range s.Mappings {
		p.subnets[m.Subnet.Masked()]++
	}
	p.allowed.Store(&allowance{ranges: s.Ranges, ends: p.allowed.Load().ends})
}

// apply changes the kernel from the current to the wanted contents. An address leaves its device before it loses its
// guest. It comes to a device after everything else is in place.
func (p *Provider) apply(ctx context.Context, change delta, touched *touched) error {
	p.whole, p.former = false, rangesOf(p.have)
	list, err := p.listAddresses()
	if err != nil {
		return err
	}
	failed := p.leave(list)
	p.announcer.Keep(p.here)
	err = p.move(ctx, change)
	if err != nil {
		return err
	}
	err = p.grant(ctx)
	if err != nil {
		return err
	}
	err = p.accept(ctx)
	if err != nil {
		return err
	}
	err = p.forget(touched)
	if err != nil {
		return err
	}
	entered, refused := p.enter(list)
	failed = append(failed, refused...)
	failed = append(failed, p.announcer.Set(entered)...)
	p.whole, p.failed = true, len(failed) > 0
	return errors.Join(failed...)
}

// accept makes the engine admit translated packets, if the ranges have changed.
func (p *Provider) accept(ctx context.Context) error {
	if p.accepted != nil && slices.Equal(p.accepted, p.state.Ranges) {
		return nil
	}
	err := p.docker.set(ctx, p.state.Ranges)
	if err == nil {
		p.accepted = p.state.Ranges
	}
	return err
}

// Enabled implements edge.Provider.
func (p *Provider) Enabled(ctx context.Context) (bool, error) {
	found, err := p.kernel.structure()
	if err != nil {
		return false, err
	}
	if len(found) > 0 {
		return true, nil
	}
	return p.docker.has(ctx)
}

// Remove implements edge.Provider. It removes the addresses of the kernel's ranges from devices.
func (p *Provider) Remove(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, err := p.kernel.structure()
	if err != nil {
		return err
	}
	foreign, err := p.read(found)
	if err != nil {
		return err
	}
	p.former = rangesOf(foreign)
	p.setState(edge.State{})
	list, err := p.listAddresses()
	if err != nil {
		return err
	}
	failed := p.leave(list)
	failed = append(failed, p.announcer.Set(nil)...)
	p.allowed.Store(&allowance{})
	err = p.drop(ctx, found)
	if err != nil {
		return err
	}
	failed = append(failed, p.docker.set(ctx, nil), p.forget(nil))
	p.state, p.want, p.have, p.live, p.known, p.accepted = nil, nil, nil, nil, 0, nil
	return errors.Join(failed...)
}

func (p *Provider) drop(ctx context.Context, found map[knftables.Family]foundTable) error {
	if len(found) == 0 {
		return nil
	}
	tx := p.text.NewTransaction()
	for family := range found {
		tx.Delete(&knftables.Table{Family: family, Name: tableName})
	}
	err := p.text.Run(ctx, tx)
	if err != nil {
		return fmt.Errorf("nft refused to delete the tables: %w", err)
	}
	return nil
}
