package nft

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/knftables"
)

// hookNumbers are the kernel's numbers, for IP and for devices.
var hookNumbers = map[knftables.BaseChainHook]uint32{
	knftables.PreroutingHook:  0,
	knftables.InputHook:       1,
	knftables.OutputHook:      3,
	knftables.PostroutingHook: 4,
	knftables.EgressHook:      1,
}

// missing returns the missing parts of a table.
func (t table) missing(f foundTable, there bool) []string {
	name := string(t.family) + " " + tableName
	if !there {
		return []string{"table " + name}
	}
	var gone []string
	for _, s := range t.sets {
		if f.sets[s.name] == nil {
			gone = append(gone, "set "+name+" "+s.name)
		}
	}
	for _, c := range t.chains {
		found, there := f.chains[c.name]
		switch {
		case !there:
			gone = append(gone, "chain "+name+" "+c.name)
		case !slices.Equal(found.comments, c.comments()):
			gone = append(gone, "rules of chain "+name+" "+c.name)
		}
	}
	for had := range f.chains {
		if !t.has(had) {
			gone = append(gone, "foreign chain "+name+" "+had)
		}
	}
	if len(gone) == 0 && !t.fits(f) {
		gone = append(gone, "sets or chains of the right kind in table "+name)
	}
	return gone
}

func (t table) has(chainName string) bool {
	return slices.ContainsFunc(t.chains, func(c chain) bool { return c.name == chainName })
}

// fits reports whether the existing table can be completed. A set or a base chain cannot change its kind.
func (t table) fits(f foundTable) bool {
	for _, s := range t.sets {
		had := f.sets[s.name]
		if had == nil {
			continue
		}
		if had.IsMap != s.isMap || had.Interval != s.interval || had.HasTimeout != s.timed ||
			had.KeyType.Bytes != s.keyLength() {
			return false
		}
	}
	for _, c := range t.chains {
		had, there := f.chains[c.name]
		if !there {
			continue
		}
		if had.Hooknum == nil || had.Priority == nil || string(had.Type) != string(c.kind) {
			return false
		}
		hook := hookNumbers[c.hook]
		if t.family == knftables.ARPFamily { // the family arp has only input and output
			hook = 1
		}
		if uint32(*had.Hooknum) != hook || int(*had.Priority) != c.priority {
			return false
		}
	}
	return true
}

// write adds to a transaction what completes the table. A new table gets its fenced ranges in the same transaction.
// Otherwise it would let packets pass until the transaction of the elements.
func (t table) write(tx *knftables.Transaction, f foundTable, there bool, fenced elements) {
	at := &knftables.Table{Family: t.family, Name: tableName}
	tx.Add(at)
	anew := !there
	if there && !t.fits(f) {
		tx.Delete(at)
		tx.Add(at)
		f, anew = foundTable{}, true
	}
	for _, s := range t.sets {
		tx.Add(s.object(t.family))
	}
	for had := range f.chains {
		if !t.has(had) {
			old := &knftables.Chain{Family: t.family, Table: tableName, Name: had}
			tx.Flush(old)
			tx.Delete(old)
		}
	}
	for _, c := range t.chains {
		c.write(tx, t.family)
	}
	if anew || f.sets[setFenced] == nil {
		for from, end := range fenced {
			tx.Add(&knftables.Element{Family: t.family, Table: tableName, Set: setFenced,
				Key: []string{spanText(from, end)}})
		}
	}
}

func (c chain) write(tx *knftables.Transaction, family knftables.Family) {
	priority := knftables.BaseChainPriority(strconv.Itoa(c.priority))
	object := &knftables.Chain{Family: family, Table: tableName, Name: c.name, Type: &c.kind, Hook: &c.hook,
		Priority: &priority}
	if c.device != "" {
		object.Device = &c.device
	}
	tx.Add(object)
	tx.Flush(&knftables.Chain{Family: family, Table: tableName, Name: c.name})
	comments := c.comments()
	for i, rule := range c.rules {
		tx.Add(&knftables.Rule{Family: family, Table: tableName, Chain: c.name, Rule: rule, Comment: &comments[i]})
	}
}

// object returns the set for nft.
func (s set) object(family knftables.Family) knftables.Object {
	var flags []knftables.SetFlag
	if s.interval {
		flags = append(flags, knftables.IntervalFlag)
	}
	if s.timed {
		flags = append(flags, knftables.TimeoutFlag)
	}
	if s.isMap {
		return &knftables.Map{Family: family, Table: tableName, Name: s.name, Type: s.keyType + " : " + s.keyType,
			Flags: flags}
	}
	return &knftables.Set{Family: family, Table: tableName, Name: s.name, Type: s.keyType, Flags: flags}
}

// spanText returns an interval in the syntax of nft.
func spanText(from, end string) string {
	first, last := span(from, end)
	if first != last {
		return first.String() + "-" + last.String()
	}
	return last.String()
}

// mend completes the tables in one transaction, and returns what was missing.
func (p *Provider) mend(ctx context.Context, want []table, had map[knftables.Family]foundTable, c contents) ([]string,
	error) {
	tx := p.text.NewTransaction()
	var gone []string
	for _, t := range want {
		found, there := had[t.family]
		missing := t.missing(found, there)
		if len(missing) == 0 {
			continue
		}
		gone = append(gone, missing...)
		t.write(tx, found, there, c[place{t.family, setFenced}])
	}
	if len(gone) == 0 {
		return nil, nil
	}
	err := p.text.Run(ctx, tx)
	if err != nil {
		return nil, fmt.Errorf("nft refused the tables: %w", err)
	}
	return gone, nil
}
