package stores

import (
	"context"
	"fmt"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// A space that is being copied has a mark in both stores, under its name. Elastic addresses have one under the empty
// name. Together the marks say who has the space, at every moment and after every crash:
//
//	the source has    the target has    the space is
//	none, or frozen   none, or a mark   the source's. Nobody sees the target's copy, which is continued or taken back
//	released          a mark            nobody's. The target has all of it, and it was compared; it is continued
//	released, gone    none              the target's. What the source has left is cleared away
//
// So both never have it at once. A store without other hosts is not served while it has a mark (Open), so that nobody
// asks a source that has let go, or a target that is incomplete.

// copyMark is the record of a copy in one of its two stores.
type copyMark struct {
	ID      ipam.ID   `json:"id"` // the same in both
	Space   string    `json:"space"`
	Host    string    `json:"host"` // whose own store takes part
	HostID  ipam.ID   `json:"host_id,omitzero"`
	Stage   copyStage `json:"stage"`
	Command string    `json:"command,omitempty"` // continues the copy
	Actor   string    `json:"actor,omitempty"`
	Began   time.Time `json:"began"`

	Accounts []string `json:"accounts,omitempty"` // that the copy of elastic addresses has made in the target
}

type copyStage string

// The stages of a copy: the first is the target's, the others are the source's.
const (
	copyArriving copyStage = "arriving" // its networks are Moving until all of them are there
	copyFrozen   copyStage = "frozen"   // invisible to other hosts: its networks are Moving
	copyReleased copyStage = "released" // the source has let go
	copyGone     copyStage = "gone"     // the target has it, and the rest here means nothing
)

// copyKeys begin the keys of copies; ledger/keys.go lists all letters.
const copyKeys = 'c'

func copyKey(space string) []byte { return append([]byte{copyKeys}, space...) }

// readMark reads the mark of a space, or nil.
func readMark(tx store.Tx, space string) (*copyMark, error) {
	return ledger.ReadJSON[copyMark](tx, copyKey(space), "a copy of space "+space)
}

// readMarks reads all marks of a store, by space.
func readMarks(tx store.Tx) (all []*copyMark, err error) {
	for one, err := range ledger.EachJSON[copyMark](tx, ledger.KindRange(copyKeys), "a copy") {
		if err != nil {
			return nil, err
		}
		all = append(all, one.Value)
	}
	return all, nil
}

func putMark(c *ledger.Change, m *copyMark) error {
	_, err := c.PutJSON(copyKey(m.Space), m)
	return err
}

// newMark writes the mark of a new copy.
func newMark(c *ledger.Change, m *copyMark) error {
	other, err := readMark(c.Tx(), m.Space)
	if err == nil && other != nil {
		err = ipam.Refuse(ipam.ErrInUse, "host %s has also started to copy %s; let one host finish first",
			other.Host, partName(m.Space))
	}
	if err != nil {
		return err
	}
	return putMark(c, m)
}

// marks reads all marks of a ledger's store.
func marks(ctx context.Context, s *ledger.Ledger) (all []*copyMark, err error) {
	err = s.View(ctx, func(tx store.Tx) error {
		all, err = readMarks(tx)
		return err
	})
	return all, err
}

// RefuseCopied refuses to serve a store with an unfinished copy. It clears away the rest of a finished one.
func RefuseCopied(ctx context.Context, s *ledger.Ledger) error {
	marks, err := marks(ctx, s)
	if err != nil {
		return err
	}
	for _, m := range marks {
		switch m.Stage {
		case copyGone:
			cp := &copying{from: s, to: s}
			var left []*group
			if left, err = cp.left(ctx, m.Space); err == nil {
				err = cp.clearSource(ctx, m.Space, left)
			}
		case copyReleased:
			err = ipam.Refuse(ipam.ErrInUse,
				"%s was copied to another store and released here, but the copy (begun %s) is not finished: finish it "+
					"with `%s`",
				partName(m.Space), m.Began.Format("2006-01-02 15:04:05 MST"), m.Command)
		default:
			err = ipam.Refuse(ipam.ErrInUse,
				"the copy of %s (begun %s) is not finished: finish it with `%s`, or undo it with --undo",
				partName(m.Space), m.Began.Format("2006-01-02 15:04:05 MST"), m.Command)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ours refuses to continue the copy of another host.
func (cp *copying) ours(m *copyMark) error {
	if m == nil || m.HostID == cp.hostID() {
		return nil
	}
	return ipam.Refuse(ipam.ErrInUse, "%s is being copied by host %s (begun %s): finish there with `%s`",
		partName(m.Space), m.Host, m.Began.Format("2006-01-02 15:04:05 MST"), m.Command)
}

// meanwhile refuses a mark of the other direction: that copy must be ended first.
func meanwhile(m *copyMark, allowed ...copyStage) error {
	if m == nil {
		return nil
	}
	for _, stage := range allowed {
		if m.Stage == stage {
			return nil
		}
	}
	return ipam.Refuse(ipam.ErrInUse,
		"a copy of %s in the other direction was interrupted (begun %s): finish it with `%s` first",
		partName(m.Space), m.Began.Format("2006-01-02 15:04:05 MST"), m.Command)
}

// both reads the marks of a space in the source and in the target.
func (cp *copying) both(ctx context.Context, space string) (source, target *copyMark, err error) {
	read := func(s *ledger.Ledger) (m *copyMark, err error) {
		err = s.View(ctx, func(tx store.Tx) error {
			m, err = readMark(tx, space)
			return err
		})
		return m, err
	}
	if source, err = read(cp.from); err != nil {
		return nil, nil, err
	}
	if target, err = read(cp.to); err != nil {
		return nil, nil, err
	}
	for _, err := range []error{cp.ours(source), cp.ours(target), meanwhile(source, copyFrozen, copyReleased, copyGone),
		meanwhile(target, copyArriving)} {
		if err != nil {
			return nil, nil, err
		}
	}
	if source != nil && target != nil && source.ID != target.ID {
		return nil, nil, fmt.Errorf("%w: the two stores record different copies of %s, because one of the stores was "+
			"restored from a backup", ipam.ErrDamaged, partName(space))
	}
	return source, target, nil
}
