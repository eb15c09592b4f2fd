package putback

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"berth/internal/docker/pin"
	"berth/internal/wholefile"
)

// note is a container that is being moved: what is needed to put it on its network again, and with which addresses.
type note struct {
	Endpoint  *pin.Endpoint `json:"endpoint"`
	Addresses []netip.Addr  `json:"addresses"`
}

func (n *note) key() string { return n.Endpoint.ID + " " + n.Endpoint.Network }

// notes are those of all that are off their networks at this moment, in a file. Whoever uses them holds a lock.
type notes struct {
	path string
	all  map[string]note
}

// openNotes reads what a daemon left that was killed.
func openNotes(path string) (*notes, error) {
	n := &notes{path: path, all: map[string]note{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	var list []note
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("which containers are off their networks, in %s: %w", path, err)
	}
	for _, one := range list {
		if one.Endpoint != nil {
			n.all[one.key()] = one
		}
	}
	return n, nil
}

// put notes one, durably.
func (n *notes) put(one note) error {
	n.all[one.key()] = one
	if err := n.save(); err != nil {
		delete(n.all, one.key())
		return err
	}
	return nil
}

// drop forgets one. Where that cannot be written it is found to be on its network after a restart.
func (n *notes) drop(one note) error {
	delete(n.all, one.key())
	return n.save()
}

func (n *notes) list() []note {
	return slices.SortedFunc(maps.Values(n.all), func(a, b note) int { return strings.Compare(a.key(), b.key()) })
}

// save writes the file whole, or leaves it as it was.
func (n *notes) save() error {
	text, err := json.Marshal(n.list())
	if err != nil {
		return err
	}
	return wholefile.Write(n.path, append(text, '\n'))
}
