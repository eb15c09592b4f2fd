package leave

import "testing"

// TestSeatHas: the name of its endpoint identifies the container that is being disconnected. It matches no other
// container.
func TestSeatHas(t *testing.T) {
	s := Endpoint{ID: "c0ffee", Container: "web"}
	for _, c := range []struct {
		id, name string
		want     bool
	}{
		{"c0ffee", "web", true}, {"c0ffee", "renamed", true}, {"ep-5ea1", "web", true},
		{"ep-5ea1", "stranger", false}, {"decade", "web", false},
	} {
		if got := s.has(c.id, c.name); got != c.want {
			t.Errorf("%s %s: %v", c.id, c.name, got)
		}
	}
}
