package ipamtest

import (
	"context"
	"errors"
	"testing"

	"berth/store"
)

// Failing is a store that stops working after Left updates, like a machine that dies.
type Failing struct {
	store.Store
	Left int
}

// Update works until no updates are left.
func (f *Failing) Update(ctx context.Context, fn func(store.Tx) error) error {
	if f.Left--; f.Left < 0 {
		return ErrDied
	}
	return f.Store.Update(ctx, fn)
}

// ErrDied is the error of a Failing that has stopped.
var ErrDied = errors.New("the machine died")

// CountKeys counts the records of a kind, by its letter.
func CountKeys(t *testing.T, st store.Store, kind byte) (n int) {
	t.Helper()
	err := st.View(ctx, func(tx store.Tx) error {
		n = 0
		for _, err := range tx.Scan(store.Prefix([]byte{kind})) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	fine(t, err)
	return n
}
