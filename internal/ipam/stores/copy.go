package stores

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// copying is a run of CopySpaces.
type copying struct {
	from, to    *ledger.Ledger
	opt         ipam.CopyOptions
	done, total int
}

// CopySpaces moves spaces from one store to another with everything in them: networks, subnets, attachments, leases,
// memories, reservations and events. It also moves elastic addresses (copyelastic.go), unless they stay with the
// cluster. All ids stay the same. When it returns, the source no longer has the spaces.
//
// Collisions with the target are refused before anything is written, as a *PlanError. Then everything is written to the
// target, where nobody sees it, and read back and compared. Only then does the source let go, and only after that does
// the target show it (copymark.go). After an error the same call continues, or takes everything back as long as the
// source has not let go.
//
// At most one of the services has a Member. The other one's store is that host's own, opened by this process alone; its
// Config says Copying.
func CopySpaces(ctx context.Context, from, to *ledger.Ledger, opt ipam.CopyOptions) (ipam.CopyReport, error) {
	cp := &copying{from: from, to: to, opt: opt}
	names, err := cp.choose(ctx)
	if err != nil {
		return ipam.CopyReport{}, err
	}
	if opt.Undo {
		return cp.undo(ctx, names)
	}
	report := ipam.CopyReport{DryRun: opt.DryRun, Spaces: []ipam.CopiedSpace{}}
	if err := cp.check(ctx, names, &report); err != nil || opt.DryRun {
		return report, err
	}
	report.Spaces = []ipam.CopiedSpace{}
	for _, name := range names {
		if err := cp.prepare(ctx, name, names, &report); err != nil {
			return ipam.CopyReport{}, cp.stopped(ctx, name, err)
		}
	}
	for _, name := range names { // elastic addresses come before the networks of their guests
		if err := cp.letGo(ctx, name); err != nil {
			return ipam.CopyReport{}, cp.stopped(ctx, name, err)
		}
	}
	slices.Reverse(names) // and are shown after them
	for _, name := range names {
		if err := cp.finish(ctx, name); err != nil {
			return ipam.CopyReport{}, cp.stopped(ctx, name, err)
		}
	}
	return report, nil
}

// choose lists the spaces to copy by name: the named ones, or all with contents or an interrupted copy.
func (cp *copying) choose(ctx context.Context) (names []string, err error) {
	for _, s := range []*ledger.Ledger{cp.from, cp.to} {
		marks, err := marks(ctx, s)
		if err != nil {
			return nil, err
		}
		for _, m := range marks {
			names = append(names, m.Space)
		}
	}
	has := spacesInUse(cp.from)
	if len(cp.opt.Spaces) == 0 && !cp.opt.Undo {
		names = append(names, slices.DeleteFunc(slices.Clone(has), func(name string) bool {
			return name == ipam.LocalSpace
		})...)
	}
	for _, name := range cp.opt.Spaces {
		switch {
		case name == ipam.LocalSpace:
			return nil, ipam.Refuse(ipam.ErrInvalid, "the space %s belongs to one host, and stays in that host's own "+
				"store", name)
		case !slices.Contains(has, name) && !slices.Contains(names, name):
			return nil, ipam.Refuse(ipam.ErrNotFound, "there is no network to copy in the space %q", name).
				Advise(ipam.DoListSpaces)
		}
	}
	begun := slices.Contains(names, elasticPart)
	if len(cp.opt.Spaces) > 0 {
		names = slices.Clone(cp.opt.Spaces)
	}
	if begun || !cp.opt.Undo && hasElastic(cp.from) && cp.elasticStays(names) == "" {
		names = append(names, elasticPart)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(names) > 0:
		return names, nil
	case cp.opt.Undo:
		return nil, ipam.Refuse(ipam.ErrNotFound, "no copy was interrupted; there is nothing to undo")
	}
	return nil, ipam.Refuse(ipam.ErrNotFound,
		"there is nothing to copy: all networks are in the space %s, which always stays in the host's own store",
		ipam.LocalSpace)
}

// spacesInUse lists the spaces that have a subnet or a network, and those with names of their own.
func spacesInUse(s *ledger.Ledger) []string {
	return ledger.Ask(s, func(ix *ledger.Index) (names []string) {
		for _, name := range ix.Spaces() {
			if name != ipam.LocalSpace && name != ipam.GlobalSpace {
				names = append(names, name)
			}
		}
		for _, nx := range ix.Networks() {
			if n := nx.Record(); n != nil {
				names = append(names, n.Space)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	})
}

// prepare copies a part to the target and compares it, and continues an interrupted run. names are all parts to copy.
func (cp *copying) prepare(ctx context.Context, name string, names []string, to *ipam.CopyReport) error {
	source, target, err := cp.both(ctx, name)
	switch {
	case err != nil:
		return err
	case source == nil || source.Stage == copyFrozen:
		if err := cp.begin(ctx, name, source, target); err != nil {
			return err
		}
		return cp.copy(ctx, name, names, to)
	case name == elasticPart:
		to.Elastic = &ipam.CopiedElastic{Finished: true}
	default:
		to.Spaces = append(to.Spaces, ipam.CopiedSpace{Name: name, Networks: []ipam.CopiedNetwork{}, Finished: true})
	}
	return nil
}

// letGo makes the source let go of a part, if it has not yet.
func (cp *copying) letGo(ctx context.Context, name string) error {
	source, target, err := cp.both(ctx, name)
	if err != nil || source != nil && source.Stage != copyFrozen {
		return err
	}
	return cp.release(ctx, target)
}

// finish shows a part in the target and clears it away in the source.
func (cp *copying) finish(ctx context.Context, name string) error {
	_, target, err := cp.both(ctx, name)
	if err == nil && target != nil {
		err = cp.reveal(ctx, target)
	}
	if err != nil {
		return err
	}
	left, err := cp.left(ctx, name)
	if err != nil {
		return err
	}
	if err := cp.end(ctx, name, left); err != nil {
		return err
	}
	return cp.clearSource(ctx, name, left)
}

// begin marks the target. In a shared source it also keeps other hosts from using the part.
func (cp *copying) begin(ctx context.Context, name string, source, target *copyMark) error {
	if target == nil {
		target = &copyMark{ID: ipam.NewID(), Space: name, Host: cp.from.Host(), HostID: cp.hostID(),
			Stage:   copyArriving,
			Command: cp.opt.Command,
			Actor:   ipam.ActorOf(ctx), Began: cp.from.Now().UTC()}
		if source != nil {
			target.ID = source.ID
		}
		if err := cp.to.Update(ctx, func(c *ledger.Change) error { return newMark(c, target) }); err != nil {
			return err
		}
	}
	if cp.from.Member() == nil {
		return nil
	}
	if source == nil {
		frozen := *target
		frozen.Stage = copyFrozen
		if err := cp.from.Update(ctx, func(c *ledger.Change) error { return newMark(c, &frozen) }); err != nil {
			return err
		}
	}
	return hide(ctx, cp.from, name, true, func(*ledger.Change) error { return nil })
}

// hostID is the id of the host whose own store takes part, or zero if no store is shared.
func (cp *copying) hostID() ipam.ID {
	if m := cmp.Or(cp.from.Member(), cp.to.Member()); m != nil {
		return m.Host
	}
	return ipam.ID{}
}

// maxPasses is how often the copy is compared. Meanwhile something may end in either store, because its time is over.
const maxPasses = 4

// copy copies a part to the target and compares it.
func (cp *copying) copy(ctx context.Context, name string, names []string, to *ipam.CopyReport) error {
	for pass := 1; ; pass++ {
		for _, s := range []*ledger.Ledger{cp.from, cp.to} {
			if err := allocator.KeepTime(ctx, s); err != nil {
				return err
			}
		}
		all, err := cp.read(ctx, name, names)
		if err != nil {
			return err
		}
		if err := cp.write(ctx, name, all); err != nil {
			return err
		}
		report := *to
		if err = cp.compare(ctx, name, all, &report); err == nil {
			*to = report
		}
		if pass == maxPasses || !errors.Is(err, errDiffers) {
			return err
		}
	}
}

// step reports the progress.
func (cp *copying) step(n int) {
	cp.done += n
	if cp.opt.Progress != nil && cp.total > 0 {
		cp.opt.Progress(min(cp.done, cp.total), cp.total)
	}
}

// stopped adds to an error what to do about the interrupted copy.
func (cp *copying) stopped(ctx context.Context, name string, err error) error {
	source, target, markErr := cp.both(context.WithoutCancel(ctx), name)
	if markErr != nil || source == nil && target == nil {
		return err
	}
	what := err.Error()
	if errors.Is(err, context.Canceled) {
		what = "the copy was interrupted"
	}
	if source != nil && source.Stage != copyFrozen {
		return ipam.Refuse(err,
			"%s; the target has all of %s, and the source has released it: finish with "+
				"`%s`", what, partName(name), cp.opt.Command)
	}
	return ipam.Refuse(err,
		"%s; the copy of %s stopped, and the source still has it: continue with `%s`, or undo it with "+
			"--undo", what, partName(name), cp.opt.Command)
}
