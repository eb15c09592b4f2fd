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

	"berth/internal/atomicfile"
	"berth/internal/docker/pin"
)

// note is what is needed to reconnect a container that is being moved, and the addresses that it then asks for.
type note struct {
	Endpoint  *pin.Endpoint `json:"endpoint"`
	Addresses []netip.Addr  `json:"addresses"`
}

func (n *note) key() string { return n.Endpoint.ID + " " + n.Endpoint.Network }

// notes are the containers that are disconnected now, in a file. The caller must hold a lock.
type notes struct {
	path string
	all  map[string]note
}

// openNotes reads the notes of a killed daemon. A missing file means none.
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
		return nil, fmt.Errorf("cannot read which containers are off their networks from %s: %w", path, err)
	}
	for _, one := range list {
		if one.Endpoint != nil {
			n.all[one.key()] = one
		}
	}
	return n, nil
}

// put adds a note. It is on disk when put returns.
func (n *notes) put(one note) error {
	n.all[one.key()] = one
	if err := n.save(); err != nil {
		delete(n.all, one.key())
		return err
	}
	return nil
}

// drop removes a note. If that fails, the next daemon finds the container connected and drops the note.
func (n *notes) drop(one note) error {
	delete(n.all, one.key())
	return n.save()
}

func (n *notes) list() []note {
	return slices.SortedFunc(maps.Values(n.all), func(a, b note) int { return strings.Compare(a.key(), b.key()) })
}

// save writes the file whole, or leaves it unchanged.
func (n *notes) save() error {
	text, err := json.Marshal(n.list())
	if err != nil {
		return err
	}
	return atomicfile.Write(n.path, append(text, '\n'))
}
