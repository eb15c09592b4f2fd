package ipam

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/alloc"
)

// Interface is a request for one interface of an owner.
type Interface struct {
	Number int    `json:"number"` // -1, with Action add: the next one
	Action Action `json:"action,omitempty"`
	Wishes []Wish `json:"wishes,omitempty"` // none: one address from any pool
}

// Action is what to do with an interface that may already exist.
type Action string

// The actions. Ensure keeps wishes that are already met and refuses those that contradict existing addresses.
const (
	Ensure          Action = ""
	AddInterface    Action = "add"    // it must not exist yet
	ModifyInterface Action = "modify" // wishes replace the addresses in their slots; the rest stays
	RemoveInterface Action = "remove"
)

// Wish requests the address in one slot of an interface: a given address, one from the pools with a name, or one from
// any pool.
type Wish struct {
	Slot    int        `json:"slot"`             // the number in ip0, ip1, ...
	Address netip.Addr `json:"address,omitzero"` // exactly this address
	Pool    string     `json:"pool,omitempty"`   // any pool with this name
	None    bool       `json:"none,omitempty"`   // release the address (modify)
	Family  int        `json:"family,omitempty"` // 4 or 6: only this family; 0: either
	Subnet  string     `json:"subnet,omitempty"` // CIDR, name or id: only this subnet
	Not     netip.Addr `json:"not,omitzero"`     // any address except this one
}

// family reports whether an address has the wanted family.
func (w *Wish) family(addr netip.Addr) bool {
	return w.Family == 0 || (w.Family == 6) == addr.Is6()
}

// Suits reports whether a subnet has the wanted family and is the wanted subnet.
func (w *Wish) Suits(sub *Subnet) bool {
	return w.family(sub.CIDR.Addr()) &&
		(w.Subnet == "" || w.Subnet == sub.CIDR.String() || w.Subnet == sub.Name || w.Subnet == sub.ID.String() ||
			w.Subnet == sub.ID.Short())
}

// MaxSlots is the maximum number of interfaces of an owner, and of addresses of each.
const MaxSlots = 64

// ParseInterface reads Ganeti's form. It accepts "0:ip0=192.0.2.4,ip1=pool,ip2=NAME", where "ip" means "ip0"
// and the interface number defaults to 0. It also accepts "N:add,...", "N:modify,ip1=A", "N:modify,ip1=none" and
// "N:remove", or a single address, "pool" or pool name. The wishes are sorted by slot. Its errors wrap ErrInvalid.
func ParseInterface(s string) (Interface, error) {
	in, err := parseInterface(s)
	if err != nil {
		return Interface{}, Refuse(ErrInvalid, "%q is not a valid choice of addresses: %v", s, err)
	}
	return in, nil
}

func parseInterface(s string) (in Interface, err error) {
	number, rest, numbered := cutNumber(s)
	if !numbered && !strings.ContainsAny(s, "=,") {
		w, err := parseWish(0, s)
		if err != nil {
			return in, err
		}
		in.Wishes = []Wish{w}
		return in, in.Check()
	}
	if numbered {
		if in.Number, err = strconv.Atoi(number); err != nil || number != strconv.Itoa(in.Number) {
			return in, fmt.Errorf("%q is not the number of an interface; write 0 to %d, or -1 for the next", number,
				MaxSlots-1)
		}
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
	slices.SortStableFunc(in.Wishes, func(a, b Wish) int { return cmp.Compare(a.Slot, b.Slot) })
	return in, in.Check()
}

// cutNumber cuts the interface number from the front. It leaves an IPv6 address, which may start with digits and a
// colon, whole.
func cutNumber(s string) (number, rest string, ok bool) {
	number, rest, ok = strings.Cut(s, ":")
	digits := strings.TrimPrefix(number, "-")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", s, false
	}
	if beforeWish, _, _ := strings.Cut(rest, "="); strings.Contains(beforeWish, ":") {
		return "", s, false
	}
	return number, rest, true
}

// parseSlot reads "ip1=VALUE".
func parseSlot(part string) (Wish, error) {
	key, value, ok := strings.Cut(part, "=")
	if !ok {
		return Wish{}, fmt.Errorf("%q has no slot; write ip0=%s, and ip1=... for a second address", part,
			cmp.Or(part, "ADDRESS"))
	}
	number, isIP := strings.CutPrefix(key, "ip")
	slot, err := 0, error(nil)
	if number != "" {
		slot, err = strconv.Atoi(number)
	}
	if !isIP || err != nil || slot < 0 || slot >= MaxSlots || number != "" && number != strconv.Itoa(slot) {
		return Wish{}, fmt.Errorf("%q is not one of ip0 to ip%d", key, MaxSlots-1)
	}
	return parseWish(slot, value)
}

func parseWish(slot int, value string) (Wish, error) {
	switch {
	case value == "":
		return Wish{}, errors.New("an address is missing; write one, or pool, or the name of a pool")
	case value == "pool":
		return Wish{Slot: slot}, nil
	case value == "none":
		return Wish{Slot: slot, None: true}, nil
	}
	if address, _, ok := strings.Cut(value, "/"); ok {
		return Wish{}, fmt.Errorf("%q is a prefix, not an address; write %s", value,
			cmp.Or(address, "an address"))
	}
	if _, err := alloc.ParseRange(value); err == nil && strings.ContainsAny(value, "-+") {
		return Wish{}, fmt.Errorf("%q is a range, not an address; write one address, or the name of a pool", value)
	}
	addr, err := alloc.ParseAddr(value)
	if err == nil {
		return Wish{Slot: slot, Address: addr}, nil
	}
	if err := oneAddress(slot, value); err != nil {
		return Wish{}, err
	}
	if meansAddress(value) {
		return Wish{}, err
	}
	if err := CheckName("pool", value); err != nil {
		return Wish{}, err
	}
	return Wish{Slot: slot, Pool: value}, nil
}

// oneAddress refuses several addresses for one slot, and says how to write them.
func oneAddress(slot int, value string) error {
	var slots []string
	for i, text := range strings.Fields(value) {
		if _, err := alloc.ParseAddr(text); err != nil {
			return nil
		}
		slots = append(slots, fmt.Sprintf("ip%d=%s", slot+i, text))
	}
	if len(slots) < 2 {
		return nil
	}
	return fmt.Errorf("%q is %d addresses; write %s", value, len(slots), strings.Join(slots, ","))
}

// Check refuses duplicate slots, gaps unless the action is modify, and contradictions. It also checks what came as
// JSON.
func (in *Interface) Check() error {
	if in.Number < -1 || in.Number >= MaxSlots {
		return fmt.Errorf("%d is not the number of an interface; write 0 to %d, or -1 for the next", in.Number,
			MaxSlots-1)
	}
	switch in.Action {
	case Ensure, AddInterface, ModifyInterface, RemoveInterface:
	default:
		return fmt.Errorf("%q is not one of add, modify and remove", in.Action)
	}
	if in.Number == -1 && in.Action != AddInterface {
		return errors.New("-1 means the next interface and needs add; write -1:add,ip0=pool")
	}
	if in.Action == RemoveInterface && len(in.Wishes) > 0 {
		return fmt.Errorf("remove takes no addresses; write %d:remove", in.Number)
	}
	if in.Action == ModifyInterface && len(in.Wishes) == 0 {
		return fmt.Errorf("modify needs an address; write %d:modify,ip0=ADDRESS, or ip0=none", in.Number)
	}
	seen := map[int]bool{}
	for _, w := range in.Wishes {
		if seen[w.Slot] {
			return fmt.Errorf("ip%d is given twice", w.Slot)
		}
		if err := w.check(); err != nil {
			return err
		}
		if w.None && in.Action != ModifyInterface {
			return fmt.Errorf("ip%d=none releases an existing address and needs modify; write %d:modify,ip%d=none",
				w.Slot, in.Number, w.Slot)
		}
		seen[w.Slot] = true
	}
	if in.Action == ModifyInterface {
		return nil
	}
	for slot := range len(in.Wishes) {
		if !seen[slot] {
			return fmt.Errorf("ip%d is missing; number the addresses of an interface from ip0 on, without gaps", slot)
		}
	}
	return nil
}

// check refuses a wish that is not for exactly one address.
func (w *Wish) check() error {
	a := w.Address
	switch {
	case w.Slot < 0 || w.Slot >= MaxSlots:
		return fmt.Errorf("ip%d is not one of ip0 to ip%d", w.Slot, MaxSlots-1)
	case w.Family != 0 && w.Family != 4 && w.Family != 6:
		return fmt.Errorf("%d is not a family for ip%d; write 4 or 6", w.Family, w.Slot)
	case a.IsValid() && !w.family(a):
		return fmt.Errorf("%s is not an IPv%d address, although that family is requested", a, w.Family)
	case a.IsValid() && w.Pool != "" || w.None && (a.IsValid() || w.Pool != ""):
		return fmt.Errorf(`ip%d gives more than one of "address", "pool" and "none"; give only one`, w.Slot)
	case a.IsValid() && w.Not.IsValid():
		return fmt.Errorf("ip%d requests the address %s, and also any address except %s; give only one of the two",
			w.Slot, a, w.Not)
	case w.Not.Is4In6() || w.Not.Zone() != "":
		return fmt.Errorf("%s cannot be an address here; write it without a zone, and not mapped into IPv6",
			w.Not)
	case a.Is4In6():
		return fmt.Errorf("%s is an IPv4 address mapped into IPv6; write %s", a, a.Unmap())
	case a.Zone() != "":
		return fmt.Errorf("%q has a zone, which is valid on one host only; write it without the zone", a)
	case w.Pool != "":
		return CheckName("pool", w.Pool)
	}
	return nil
}

// Meant returns a test of subnets for each thing that an edit names in its network: a subnet, an address, a range, a
// pool or a family. The tests select one of several networks with the same name. A Docker network of both families is
// two such networks, with one subnet each. Nil means that the edit names only its network.
func Meant(e Edit) []func(*Subnet) bool {
	switch e := e.(type) {
	case *AddSubnet:
		if at := e.CIDR; at.IsValid() {
			return ofFamily(at.Addr())
		}
		return ofFamily(e.From.Addr())
	case *ModifySubnet:
		return meantBy(Wish{Subnet: e.Subnet})
	case *RemoveSubnet:
		return meantBy(Wish{Subnet: e.Subnet})
	case *AddPool:
		return append(meantBy(Wish{Subnet: e.Subnet}), meantByRange(e.Range)...)
	case *ModifyPool:
		return meantByPool(e.Pool)
	case *RemovePool:
		return meantByPool(e.Pool)
	case *AddExclusion:
		return meantByRange(e.Range)
	case *RemoveExclusion:
		return meantByRange(e.Range)
	case *AddReservation:
		return meantBy(e.Wishes...)
	case *RemoveReservation:
		return meantBy(Wish{Address: e.Address})
	case *TakeAddress:
		return append(meantBy(Wish{Subnet: e.Subnet}), meantBy(e.Interface.Wishes...)...)
	case *ReleaseAddress:
		return meantBy(Wish{Address: e.Address})
	case *AssociateElastic:
		return append(ofFamily(e.Address), meantBy(Wish{Address: e.Guest})...)
	}
	return nil
}

// meantBy returns one test for each wish that names a place.
func meantBy(wishes ...Wish) (all []func(*Subnet) bool) {
	for _, w := range wishes {
		if w.Subnet == "" && w.Pool == "" && w.Family == 0 && !w.Address.IsValid() {
			continue
		}
		all = append(all, func(sub *Subnet) bool {
			return w.Suits(sub) && (w.Pool == "" || sub.HasPool(w.Pool)) &&
				(!w.Address.IsValid() || sub.CIDR.Contains(w.Address))
		})
	}
	return all
}

func meantByRange(r Range) []func(*Subnet) bool {
	if r.IsZero() {
		return nil
	}
	return []func(*Subnet) bool{func(sub *Subnet) bool { return Covers(sub.CIDR, r.IPRange) }}
}

// meantByPool tests for a pool, given by its range or its name.
func meantByPool(pool string) []func(*Subnet) bool {
	if r, err := alloc.ParseRange(pool); err == nil {
		return meantByRange(Range{IPRange: r})
	}
	return meantBy(Wish{Pool: pool})
}

func ofFamily(addr netip.Addr) []func(*Subnet) bool {
	switch {
	case addr.Is4():
		return meantBy(Wish{Family: 4})
	case addr.Is6():
		return meantBy(Wish{Family: 6})
	}
	return nil
}
