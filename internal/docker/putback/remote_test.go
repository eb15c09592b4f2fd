package putback

import (
	"context"
	"testing"

	"berth/internal/docker"
	"berth/internal/ipam"
)

// mover is `berth witness` with a mode.
type mover struct {
	ipam.Onlooker
	connector Connector
	mode      Mode
}

func (m mover) Move(ctx context.Context, order ipam.MoveOrder) (ipam.MoveAnswer, error) {
	return Do(ctx, m.connector, m.mode, order), nil
}

// `berth witness` moves only the containers that its own mode allows; by default those with a reserved address.
func TestRemote(t *testing.T) {
	for _, row := range []struct {
		mode     Mode
		own, had int // last bytes of the containers' addresses afterwards
	}{{Reserved, 2, 3}, {All, 2, 4}, {off, 1, 3}} {
		e := newEngine(t)
		own, had := e.runs("own", 1, 2), e.runs("had", 3, 4)
		own.Reserved = true
		k := e.keeper(All)
		by := mover{connector: k.cfg.Connector, mode: row.mode}
		k.cfg.Connector = Remote{func() ipam.Onlooker { return by }}
		k.putBack(t.Context(), []docker.Astray{own, had})
		if e.has("own") != row.own || e.has("had") != row.had {
			t.Errorf("%s: the one has %d, and the other %d", row.mode, e.has("own"), e.has("had"))
		}
		e.noNotes()
	}
}
