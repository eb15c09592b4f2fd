package ipam

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"berth/store"
)

// The journal of an import is what is still to be done of it, so that it can be gone on with, or taken back, after
// whatever ended it: first all its steps in chunks, then the head, with which the import has begun. Each transaction that
// makes steps moves the head's place along; the last one deletes the head.

// importHead is the record at the head of a journal.
type importHead struct {
	ID        ID        `json:"id"`
	Actor     string    `json:"actor,omitempty"`
	Began     time.Time `json:"began"`
	Chunks    int       `json:"chunks"`
	Total     int       `json:"total"` // steps
	Done      int       `json:"done"`  // steps
	Chunk     int       `json:"chunk"` // the place behind the steps that are done: in this chunk
	At        int       `json:"at"`    // behind so many steps of it
	Undoing   bool      `json:"undoing,omitempty"`
	Added     Counts    `json:"added"` // by the steps that are done
	Unchanged Counts    `json:"unchanged"`
}

// chunkSize is the size of the steps in one record, about.
const chunkSize = 8 << 10

// headKey is with the settings, away from the rest of the journal: each transaction of the import writes the page that it is
// on, and that one should be small.
func headKey() []byte { return append([]byte{settingKeys}, "import"...) }

func chunkKey(n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{importKeys, 'c'}, uint32(n))
}

// revealedKey has the revision with which a network of the import was let be seen.
func revealedKey(network ID) []byte { return append([]byte{importKeys, 'r'}, network[:]...) }

// beginImport writes the journal.
func (s *Service) beginImport(ctx context.Context, head *importHead, steps []step, at *pace) error {
	if err := s.sweepJournal(ctx, at); err != nil {
		return err
	}
	all := chunked(steps)
	head.ID, head.Actor, head.Began, head.Chunks, head.Total = NewID(), actorOf(ctx), s.now(), len(all), len(steps)
	for from, to := 0, 0; from < len(all); from = to {
		err := s.paced(ctx, at, func(c *change, most int) error {
			to = min(from+chunks(most), len(all))
			for i := from; i < to; i++ {
				if err := c.tx.Put(chunkKey(i), all[i]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.update(ctx, func(c *change) error {
		switch other, err := readHead(c.tx); {
		case err != nil:
			return err
		case other != nil:
			return other.openError()
		}
		if _, err := c.event(&Event{Verb: ImportBegun, Detail: head.ID.Short()}); err != nil {
			return err
		}
		return c.putHead(head)
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

// readHead reads the head of the journal; nil where no import is open.
func readHead(tx store.Tx) (*importHead, error) {
	raw, err := tx.Get(headKey())
	if err != nil || raw == nil {
		return nil, err
	}
	head := new(importHead)
	return head, decodeJSON("an import", raw, head)
}

func (c *change) putHead(head *importHead) error {
	_, err := c.putJSON(headKey(), head, false)
	return err
}

// endImport deletes the head, with which the import has ended. The rest of the journal means nothing then.
func (c *change) endImport(head *importHead) error {
	how := "added " + head.Added.String()
	if head.Undoing {
		how = "undone"
	}
	if _, err := c.event(&Event{Verb: ImportEnded, Detail: head.ID.Short() + " " + how}); err != nil {
		return err
	}
	return c.tx.Delete(headKey())
}

// sweepJournal deletes what an import that is over, or never began, has left of its journal.
func (s *Service) sweepJournal(ctx context.Context, at *pace) error {
	for {
		n := 0
		err := s.paced(ctx, at, func(c *change, most int) (err error) {
			n = 0
			if head, err := readHead(c.tx); err != nil || head != nil {
				return err
			}
			page := kindRange(importKeys)
			page.Limit = chunks(most)
			n, err = deleteWhile(c.tx, page, func(int, []byte) bool { return true })
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// journalReader hands out the steps of a journal. It keeps the chunk that it has read last.
type journalReader struct {
	chunk int
	steps []step
}

func (r *journalReader) read(tx store.Tx, chunk int) ([]step, error) {
	if r.steps != nil && r.chunk == chunk {
		return r.steps, nil
	}
	raw, err := tx.Get(chunkKey(chunk))
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, fmt.Errorf("%w: a part of the journal of an import is not there", ErrDamaged)
	}
	steps, err := decodeSteps(raw)
	if err != nil {
		return nil, err
	}
	r.chunk, r.steps = chunk, steps
	return steps, nil
}

// next is the step at the place of head, and moves the place behind it; nil at the end.
func (r *journalReader) next(tx store.Tx, head *importHead) (*step, error) {
	if head.Done == head.Total {
		return nil, nil
	}
	steps, err := r.read(tx, head.Chunk)
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
func (r *journalReader) previous(tx store.Tx, head *importHead) (*step, error) {
	if head.Done == 0 {
		return nil, nil
	}
	if head.At == 0 {
		head.Chunk--
	}
	steps, err := r.read(tx, head.Chunk)
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
