package record

import (
	"errors"
	"fmt"

	"berth/store"
)

// MaxKey is how many bytes a key has at most. bbolt's own bound is 32,768.
const MaxKey = 4096

// ErrOver answers what is asked of a transaction whose function has returned.
var ErrOver = errors.New("the transaction is over: its function has returned")

// Rules says which writes a transaction takes, and counts them. The zero Rules are those of an update that has written
// nothing.
type Rules struct {
	Over     bool  // its function has returned
	ReadOnly bool  // it is a View
	Count    int   // Puts and Deletes taken, repeated ones included
	Failed   error // the first Put or Delete that was refused; the update fails with it whatever the function answers
}

// Put says whether key may be set to value, and counts it.
func (r *Rules) Put(key, value []byte) error {
	if err := r.may(key); err != nil {
		return err
	}
	if len(value) > store.MaxValue {
		return r.refuse(fmt.Errorf("%w: the value of %s has %d bytes; at most %d are kept", store.ErrTooLarge,
			Quote(key), len(value), store.MaxValue))
	}
	r.Count++
	return nil
}

// Delete says whether key may be removed, and counts it.
func (r *Rules) Delete(key []byte) error {
	if err := r.may(key); err != nil {
		return err
	}
	r.Count++
	return nil
}

func (r *Rules) may(key []byte) error {
	switch {
	case r.Over:
		return ErrOver
	case r.ReadOnly:
		return fmt.Errorf("%w: a View cannot change %s", store.ErrReadOnly, Quote(key))
	case len(key) == 0:
		return r.refuse(errors.New("a key of the store must not be empty"))
	case len(key) > MaxKey:
		return r.refuse(fmt.Errorf("the key %s is too long: at most %d bytes", Quote(key), MaxKey))
	case r.Count >= store.MaxWrites:
		return r.refuse(fmt.Errorf("%w: one makes at most %d; split it into several", store.ErrTooMany,
			store.MaxWrites))
	}
	return nil
}

func (r *Rules) refuse(err error) error {
	if r.Failed == nil {
		r.Failed = err
	}
	return err
}
