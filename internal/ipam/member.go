package ipam

// Member is what makes a host one of several that share a store. A Service whose Config has one stands on a
// store.Shared.
type Member struct {
	Host    ID      // the host's own id, kept with its own state: a name may be given again, an id is not
	Session ID      // of this run of the daemon: of two that call themselves the same host, the later one goes on
	Version string  // of the daemon, for others to see
	Mark    [4]byte // which each id ends with that is made in the store, and no other: it tells which store an id is of
}

// Marked is id with the mark of the store that it is made in.
func (m *Member) Marked(id ID) ID {
	if m != nil {
		copy(id[len(id)-len(m.Mark):], m.Mark[:])
	}
	return id
}

// Bears tells whether id was made in the store of that mark.
func (id ID) Bears(mark [4]byte) bool { return [4]byte(id[len(id)-len(mark):]) == mark }
