package bulk

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// The journal of an import is what is still to be done of it, so that it can be gone on with, or taken back, after
// whatever ended it: first all its steps in chunks, then the head, with which the import has begun. Each transaction
// that makes steps moves the head's place along; the last one deletes the head.

// importHead is the record at the head of a journal.
type importHead struct {
	ID        ipam.ID     `json:"id"`
	Actor     string      `json:"actor,omitempty"`
	Began     time.Time   `json:"began"`
	Chunks    int         `json:"chunks"`
	Total     int         `json:"total"` // steps
	Done      int         `json:"done"`  // steps
	Chunk     int         `json:"chunk"` // the place behind the steps that are done: in this chunk
	At        int         `json:"at"`    // behind so many steps of it
	Undoing   bool        `json:"undoing,omitempty"`
	Added     ipam.Counts `json:"added"` // by the steps that are done
	Unchanged ipam.Counts `json:"unchanged"`

	Unmade []ipam.PlanProblem `json:"unmade,omitempty"` // associations that were refused
}

// chunkSize is the size of the steps in one record, about.
const chunkSize = 8 << 10

// headKey is with the settings, away from the rest of the journal: each transaction of the import writes the page that
// it is on, and that one should be small.
func headKey() []byte { return append([]byte{ledger.SettingKeys}, "import"...) }

// importKeys begin the keys of the rest; ledger/keys.go has all letters.
const importKeys = 'j'

func chunkKey(n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{importKeys, 'c'}, uint32(n))
}

// revealedKey has the revision with which a network of the import was let be seen.
func revealedKey(network ipam.ID) []byte {
	return append([]byte{importKeys, 'r'}, network[:]...)
}

// beginImport writes the journal.
func beginImport(ctx context.Context, s *ledger.Ledger, head *importHead, steps []step, reserves []string,
	at *Pace) error {
	if err := SweepJournal(ctx, s, at); err != nil {
		return err
	}
	all := chunked(steps)
	head.ID, head.Actor, head.Began, head.Chunks, head.Total = ipam.NewID(), ipam.ActorOf(ctx), s.Now(), len(all),
		len(steps)
	for from, to := 0, 0; from < len(all); from = to {
		err := paced(ctx, s, at, func(c *ledger.Change, most int) error {
			to = min(from+chunks(most), len(all))
			for i := from; i < to; i++ {
				if err := c.Tx().Put(chunkKey(i), all[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.Update(ctx, func(c *ledger.Change) error {
		switch other, err := ReadHead(c.Tx()); {
		case err != nil:
			return err
		case other != nil:
			return other.openError()
		}
		if err := unlocked(c, reserves); err != nil {
			return err
		}
		if _, err := c.Event(&ipam.Event{Verb: ipam.ImportBegun, Detail: head.ID.Short()}); err != nil {
			return err
		}
		return putHead(c, head)
	})
}

// chunked writes the steps down, in records of about chunkSize.
func chunked(steps []step) (chunks [][]byte) {
	var b []byte
	for i := range steps {
		b = steps[i].append(b)
		if len(b) >= chunkSize || i == len(steps)-1 {
			chunks = append(chunks, b)
			b = nil
		}
	}
	return chunks
}

// ReadHead reads the head of the journal; nil where no import is open.
func ReadHead(tx store.Tx) (*importHead, error) {
	raw, err := tx.Get(headKey())
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, nil
	}
	head := new(importHead)
	return head, ipam.DecodeJSON("an import", raw, head)
}

func putHead(c *ledger.Change, head *importHead) error {
	_, err := c.PutJSON(headKey(), head, false)
	return err
}

// endImport deletes the head, with which the import has ended. The rest of the journal means nothing then.
func endImport(c *ledger.Change, head *importHead) error {
	how := "added " + head.Added.String()
	if head.Undoing {
		how = "undone"
	}
	if _, err := c.Event(&ipam.Event{Verb: ipam.ImportEnded, Detail: head.ID.Short() + " " + how}); err != nil {
		return err
	}
	return c.Tx().Delete(headKey())
}

// SweepJournal deletes what an import that is over, or never began, has left of its journal.
func SweepJournal(ctx context.Context, s *ledger.Ledger, at *Pace) error {
	for {
		n := 0
		err := paced(ctx, s, at, func(c *ledger.Change, most int) (err error) {
			n = 0
			if head, err := ReadHead(c.Tx()); err != nil {
				return err
			} else if head != nil {
				return nil
			}
			page := ledger.KindRange(importKeys)
			page.Limit = chunks(most)
			n, err = ledger.DeleteWhile(c.Tx(), page, func(int, []byte) bool { return true })
			return err
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// JournalReader hands out the steps of a journal. It keeps the chunk that it has read last.
type JournalReader struct {
	chunk int
	steps []step
}

// Read reads the steps of one chunk of the journal.
func (r *JournalReader) Read(tx store.Tx, chunk int) ([]step, error) {
	if r.steps != nil && r.chunk == chunk {
		return r.steps, nil
	}
	raw, err := tx.Get(chunkKey(chunk))
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, fmt.Errorf("%w: a part of the journal of an import is not there", ipam.ErrDamaged)
	}
	steps, err := decodeSteps(raw)
	if err != nil {
		return nil, err
	}
	r.chunk, r.steps = chunk, steps
	return steps, nil
}

// next is the step at the place of head, and moves the place behind it; nil at the end.
func (r *JournalReader) next(tx store.Tx, head *importHead) (*step, error) {
	if head.Done == head.Total {
		return nil, nil
	}
	steps, err := r.Read(tx, head.Chunk)
	if err != nil {
		return nil, err
	}
	if head.At >= len(steps) {
		head.Chunk, head.At = head.Chunk+1, 0
		return r.next(tx, head)
	}
	head.At++
	head.Done++
	return &steps[head.At-1], nil
}

// previous is the step before the place of head, and moves the place before it; nil at the beginning.
func (r *JournalReader) previous(tx store.Tx, head *importHead) (*step, error) {
	if head.Done == 0 {
		return nil, nil
	}
	if head.At == 0 {
		head.Chunk--
	}
	steps, err := r.Read(tx, head.Chunk)
	if err != nil {
		return nil, err
	}
	if head.At == 0 {
		head.At = len(steps)
	}
	head.At--
	head.Done--
	return &steps[head.At], nil
}
