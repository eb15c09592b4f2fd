package record

import (
	"errors"
	"fmt"

	"berth/store"
)

// MaxKey is the maximum length of a key in bytes. bbolt's own limit is 32,768.
const MaxKey = 4096

// ErrOver is the error of a transaction that is used after its function has returned.
var ErrOver = errors.New("the transaction is over: its function has returned")

// Rules decides which writes a transaction accepts, and counts them. The zero Rules are those of a new update.
type Rules struct {
	Over     bool  // its function has returned
	ReadOnly bool  // it is a View
	Count    int   // accepted Puts and Deletes, including repeated ones
	Failed   error // the first refused Put or Delete; the update fails with this error, whatever the function returns
}

// Put reports whether key may be set to value, and counts the write.
func (r *Rules) Put(key, value []byte) error {
	if err := r.may(key); err != nil {
		return err
	}
	if len(value) > store.MaxValue {
		return r.refuse(fmt.Errorf("%w: the value of %s has %d bytes; at most %d are allowed", store.ErrTooLarge,
			Quote(key), len(value), store.MaxValue))
	}
	r.Count++
	return nil
}

// Delete reports whether key may be removed, and counts the write.
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
		return r.refuse(fmt.Errorf("%w: an update makes at most %d writes; split it into several", store.ErrTooMany,
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
