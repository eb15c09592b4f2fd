package ipam

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"berth/internal/alloc"
)

// Interface says what is wanted of one interface of an owner (GA-24).
type Interface struct {
	Number int    `json:"number"` // -1, with Action add: the next one
	Action Action `json:"action,omitempty"`
	Wishes []Wish `json:"wishes,omitempty"` // none: one address out of any pool
}

// Action says what becomes of an interface that may be there already.
type Action string

// The actions. With the empty one, wishes that are met stay as they are, and others are refused.
const (
	Ensure          Action = ""
	AddInterface    Action = "add"    // it must not be there yet
	ModifyInterface Action = "modify" // what is wished replaces what is there; the rest stays
	RemoveInterface Action = "remove"
)

// Wish asks for the address in one slot of an interface: a given one, one out of the pools of a name, or one of any pool.
type Wish struct {
	Slot    int        `json:"slot"`             // i of `ipi`
	Address netip.Addr `json:"address,omitzero"` // this one
	Pool    string     `json:"pool,omitempty"`   // any of the pools of this name
	None    bool       `json:"none,omitempty"`   // give it back (modify)
}

// maxSlots bounds the interfaces of an owner, and the addresses of each.
const maxSlots = 64

// ParseInterface reads Ganeti's form, "0:ip0=192.0.2.4,ip1=pool,ip2=NAME", where "ip" is "ip0" and a number of the interface
// that is left out is 0; "N:add,...", "N:modify,ip1=A", "N:modify,ip1=none", "N:remove"; or a lone address, "pool" or name.
// Its errors wrap ErrInvalid.
func ParseInterface(s string) (Interface, error) {
	in, err := parseInterface(s)
	if err != nil {
		return Interface{}, &refusal{ErrInvalid, fmt.Sprintf("%q says not which addresses: %v; write an address, pool, the name of a pool, or 0:ip0=...,ip1=...", s, err)}
	}
	return in, nil
}

func parseInterface(s string) (in Interface, err error) {
	if !strings.ContainsAny(s, "=,") && !strings.HasSuffix(s, ":remove") {
		w, err := parseWish(0, s)
		in.Wishes = []Wish{w}
		return in, err
	}
	rest := s
	if head, tail, ok := strings.Cut(s, ":"); ok && !strings.Contains(head, "=") {
		if in.Number, err = strconv.Atoi(head); err != nil || in.Number < -1 || in.Number >= maxSlots || head != strconv.Itoa(in.Number) {
			return in, fmt.Errorf("%q is not the number of an interface (0 to %d, or -1 for the next)", head, maxSlots-1)
		}
		rest = tail
	}
	parts := strings.Split(rest, ",")
	switch v := Action(parts[0]); v {
	case AddInterface, ModifyInterface, RemoveInterface:
		in.Action, parts = v, parts[1:]
	}
	for _, part := range parts {
		w, err := parseSlot(part)
		if err != nil {
			return in, err
		}
		in.Wishes = append(in.Wishes, w)
	}
	return in, in.check()
}

// parseSlot reads "ip1=VALUE".
func parseSlot(part string) (Wish, error) {
	key, value, ok := strings.Cut(part, "=")
	number, isIP := strings.CutPrefix(key, "ip")
	if !ok || !isIP {
		return Wish{}, fmt.Errorf("%q is not of the form ip0=ADDRESS", part)
	}
	slot := 0
	if number != "" {
		var err error
		if slot, err = strconv.Atoi(number); err != nil || slot < 0 || slot >= maxSlots || number != strconv.Itoa(slot) {
			return Wish{}, fmt.Errorf("%q is not one of ip0 to ip%d", key, maxSlots-1)
		}
	}
	return parseWish(slot, value)
}

func parseWish(slot int, value string) (Wish, error) {
	switch {
	case value == "":
		return Wish{}, fmt.Errorf("ip%d is empty", slot)
	case value == "pool":
		return Wish{Slot: slot}, nil
	case value == "none":
		return Wish{Slot: slot, None: true}, nil
	}
	if r, err := alloc.ParseRange(value); err == nil && r.From() == r.To() && !strings.ContainsAny(value, "/+") {
		return Wish{Slot: slot, Address: r.From()}, nil
	} else if err != nil && strings.ContainsAny(value, ":/") {
		return Wish{}, err
	}
	if err := CheckName("pool", value); err != nil {
		return Wish{}, err
	}
	return Wish{Slot: slot, Pool: value}, nil
}

// check refuses slots that are given twice, gaps where the whole interface is described, and what goes not together.
func (in *Interface) check() error {
	if in.Number < -1 || in.Number >= maxSlots {
		return fmt.Errorf("%d is not the number of an interface (0 to %d, or -1 for the next)", in.Number, maxSlots-1)
	}
	if in.Number == -1 && in.Action != AddInterface {
		return fmt.Errorf("-1 is the next interface; it goes with add")
	}
	if in.Action == RemoveInterface && len(in.Wishes) > 0 {
		return fmt.Errorf("an interface that is removed has no addresses")
	}
	seen := map[int]bool{}
	for _, w := range in.Wishes {
		switch {
		case w.Slot < 0 || w.Slot >= maxSlots:
			return fmt.Errorf("ip%d is not one of ip0 to ip%d", w.Slot, maxSlots-1)
		case seen[w.Slot]:
			return fmt.Errorf("ip%d is given twice", w.Slot)
		case w.None && in.Action != ModifyInterface:
			return fmt.Errorf("ip%d=none gives back what is there; it goes with modify", w.Slot)
		}
		seen[w.Slot] = true
	}
	if in.Action == ModifyInterface {
		return nil
	}
	for slot := range len(in.Wishes) {
		if !seen[slot] {
			return fmt.Errorf("ip%d is missing: the addresses of an interface are numbered without gaps", slot)
		}
	}
	return nil
}
