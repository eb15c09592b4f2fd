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

// Config is what a Provider is made with.
type Config struct {
	// Mark and Mask are the engine's option bridge-accept-fwmark, which lets marked packets into bridges where its
	// firewall backend is nftables. A mask of zero marks nothing.
	Mark, Mask uint32
	// Tell is told of what a person may want to know; it must not wait. Nil: nobody is.
	Tell func(edge.Notice)
}

// Counts are what has happened since New.
type Counts struct {
	Repaired  int // times that something had been taken away by others
	Announced int // frames by which neighbours were told
	Contested int // times that somebody else answered for an address that is here
	Forgotten int // connections that contradicted a state
	Expired   int // renewals that came too late
}

// Provider is an edge.Provider.
type Provider struct {
	config    Config
	text      knftables.Interface
	kernel    kernel
	docker    dockerUser
	announcer *announce.Announcer
	egress    bool // the kernel can hold back frames on a device

	mu       sync.Mutex
	state    *edge.State // nil before the first Set
	want     contents
	have     contents              // what the kernel has at the generation known
	known    uint32                // zero: it is not known what the kernel has
	here     map[netip.Addr]string // the addresses that this host answers for, with their devices
	former   []edge.Range          // those of the kernel before the last change
	subnets  map[netip.Prefix]int  // of the guests: how many are in each
	whole    bool                  // the last change came to its end
	failed   bool                  // but for some addresses
	devices  map[int]string
	live     map[place]elements // what was granted last
	ticket   uint32
	accepted []edge.Range // by the engine

	stray   atomic.Bool // addresses on devices may have changed
	watched atomic.Bool // it is heard when they do

	allowed   atomic.Pointer[allowance]
	repaired  atomic.Int64
	forgotten atomic.Int64
	expired   atomic.Int64
}

// New finds out what this host can do. It changes nothing.
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

// holdsDevices: the kernel filters what leaves by a device (since 5.16).
func (p *Provider) holdsDevices() bool {
	tx := p.text.NewTransaction()
	tx.Add(&knftables.Table{Family: knftables.NetDevFamily, Name: tableName})
	chain{name: "try", kind: knftables.FilterType, hook: knftables.EgressHook, device: "lo"}.write(tx,
		knftables.NetDevFamily)
	return p.text.Check(context.Background(), tx) == nil
}

// Close ends what the provider has open. The rules stay.
func (p *Provider) Close() error { return p.announcer.Close() }

// Counts are those of now.
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

// Set is edge.Provider's.
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
	if p.state != nil { // what others have done is told apart from what this call changes
		_, err = p.check(ctx)
		if err != nil {
			return err
		}
	}
	first := p.state == nil
	if small && p.known != 0 && p.whole && !p.failed {
		p.have = p.want // it was found the same
		return p.take(ctx, s, one)
	}
	p.setState(s)
	_, _, err = p.load(ctx)
	if err != nil {
		return err
	}
	change := deltaOf(p.have, p.want)
	touched := touchedBy(change)
	if first { // whoever was here before may have ended between its transaction and what follows it
		touched = nil
	}
	return p.apply(ctx, change, touched)
}

// inOrder is a state whose lists are in the order of their addresses.
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

// apply brings the kernel from what it has to what is wanted. An address leaves its device before it loses its guest,
// and comes to it when all the rest is in place.
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

// accept has the engine let in what is translated, where the ranges are others than at the last time.
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

// Enabled is edge.Provider's.
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

// Remove is edge.Provider's. What it takes off devices are the addresses of the ranges that the kernel knows.
func (p *Provider) Remove(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, err := p.kernel.structure()
	if err != nil {
		return err
	}
	_, foreign, err := p.read(found)
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
