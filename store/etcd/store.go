// Package etcd keeps a store.Shared in an etcd cluster, where the daemons of several hosts share it.
package etcd

import (
	"context"
	"errors"
	"iter"
	"time"

	"berth/store"

	"github.com/sirupsen/logrus"
)

// ErrForeign: what is under the prefix belongs to another cluster of Berth than is expected, to something else, or to a newer Berth.
var ErrForeign = errors.New("this is not the shared store that was expected")

// Config says where the store is and how it is reached. Endpoints is mandatory.
type Config struct {
	Endpoints         []string // http://HOST:PORT or https://HOST:PORT
	CACert, Cert, Key string   // files in PEM; empty: none
	User, Password    string
	Prefix            string        // of all keys; default "berth/"
	Cluster           string        // the id that is expected under the prefix; empty: whichever is there, or a new one
	Timeout           time.Duration // how long a request is waited for; default 1.5 s
	Log               *logrus.Entry // default: nothing is logged
}

// Store is a handle on the shared store. Open makes it.
type Store struct{}

var _ store.Shared = (*Store)(nil)

// Open connects, reads everything under the prefix, and makes an empty store where there is none. Without an answer of etcd in
// time it fails with store.ErrAway; what is there and not the store expected is ErrForeign.
func Open(ctx context.Context, cfg Config) (*Store, error) { panic("pending") }

// Cluster is the store's id, 32 hexadecimal digits, drawn when it was made.
func (s *Store) Cluster() string { panic("pending") }

// Counts is what the handle has done since it was opened.
type Counts struct {
	Commits   uint64 // transactions of etcd that were committed
	Updates   uint64 // functions whose writes were in them
	Conflicts uint64 // functions that were run again because somebody else had written what they read
	Unknown   uint64 // transactions whose outcome had to be found out
}

// Counts tells what the handle has done.
func (s *Store) Counts() Counts { panic("pending") }

func (s *Store) View(ctx context.Context, fn func(store.Tx) error) error   { panic("pending") }
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error { panic("pending") }
func (s *Store) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	panic("pending")
}
func (s *Store) Close() error                       { panic("pending") }
func (s *Store) Reach() store.Reach                 { panic("pending") }
func (s *Store) Announce(name string, value []byte) { panic("pending") }
func (s *Store) Present() map[string][]byte         { panic("pending") }
func (s *Store) Follow(ctx context.Context, load func(store.Tx) error, apply func([]store.Foreign)) error {
	panic("pending")
}
