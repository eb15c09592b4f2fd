package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// addressModel is what one address does (LN-12): it is in nobody's hands or in one holder's. A take succeeds where nobody else has
// it, and repeated gets the same answer; a refusal names who has it; a release frees what its holder has; and what
// was lost happened or did not. The state is the holder, 0 for nobody.
var addressModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{holder(0)} },
	Step: func(state, input, _ any) []any {
		at, op := state.(holder), input.(*operation)
		after := at
		switch {
		case op.give && at == op.by:
			after = 0
		case !op.give && op.verdict == taken:
			if at != op.holder || at == op.by {
				return nil
			}
		case !op.give && at == 0:
			after = op.by
		case !op.give && at != op.by && op.verdict == done:
			return nil
		}
		if op.verdict == lost && after != at {
			return []any{at, after}
		}
		return []any{after}
	},
	DescribeOperation: func(input, _ any) string { return input.(*operation).String() },
}

// model takes a whole history apart by address. Refusals of takes without an address are about all of them, and
// are the ledger's to judge.
func model() porcupine.Model {
	m := addressModel.ToModel()
	m.Partition = func(all []porcupine.Operation) [][]porcupine.Operation {
		parts := map[netip.Addr][]porcupine.Operation{}
		for _, op := range all {
			addr := op.Input.(*operation).about()
			parts[addr] = append(parts[addr], op)
		}
		var list [][]porcupine.Operation
		for _, part := range parts {
			list = append(list, part)
		}
		return list
	}
	return m
}

// about is the address whose state an operation tells about or may have changed; the zero one: of none.
func (op *operation) about() netip.Addr {
	switch op.verdict {
	case done, lost:
		if op.give {
			return op.asked
		}
		return op.addr
	case taken:
		return op.asked
	}
	return netip.Addr{}
}

// linearizable is nil when the history can be explained.
func (h history) linearizable() error {
	var ops []porcupine.Operation
	for i := range h {
		if op := &h[i]; op.about().IsValid() {
			ops = append(ops, porcupine.Operation{ClientId: op.caller, Input: op, Call: op.called.Nanoseconds(), Return: op.returned.Nanoseconds()})
		}
	}
	m := model()
	if result := porcupine.CheckOperationsTimeout(m, ops, patience); result != porcupine.Ok {
		return fmt.Errorf("%d operations: %s%s", len(ops), result, unexplained(m, ops))
	}
	return nil
}

// unexplained is the history of one address that has no explanation.
func unexplained(m porcupine.Model, ops []porcupine.Operation) string {
	for _, part := range m.Partition(ops) {
		if porcupine.CheckOperationsTimeout(m, part, 5*time.Second) == porcupine.Ok {
			continue
		}
		var b strings.Builder
		for _, op := range part {
			fmt.Fprintf(&b, "\n%v", op.Input)
		}
		return b.String()
	}
	return ""
}

// TestModelNotices: a history in which an address was given twice, refused for nothing or lost is not explained.
func TestModelNotices(t *testing.T) {
	addr := netip.MustParseAddr("10.77.0.9")
	take := func(by holder, v verdict) operation { return operation{by: by, asked: addr, addr: addr, verdict: v} }
	refused := func(by, has holder) operation { return operation{by: by, asked: addr, verdict: taken, holder: has} }
	give := func(by holder, v verdict) operation { return operation{give: true, by: by, asked: addr, verdict: v} }
	for name, row := range map[string]struct {
		ops  []operation
		want bool
	}{
		"in turn":                      {[]operation{take(1, done), give(1, done), take(2, done)}, true},
		"repeated":                     {[]operation{take(1, done), take(1, done), refused(2, 1)}, true},
		"given twice":                  {[]operation{take(1, done), take(2, done)}, false},
		"given twice after a release":  {[]operation{take(1, done), give(1, done), take(2, done), take(3, done)}, false},
		"refused though free":          {[]operation{take(1, done), give(1, done), refused(2, 1)}, false},
		"refused for another":          {[]operation{take(1, done), refused(2, 3)}, false},
		"lost, and it happened":        {[]operation{take(1, lost), refused(2, 1)}, true},
		"lost, and it did not":         {[]operation{take(1, lost), take(2, done)}, true},
		"lost, happened, not released": {[]operation{take(1, lost), refused(2, 1), take(3, done)}, false},
		"release lost, and happened":   {[]operation{take(1, done), give(1, lost), take(2, done)}, true},
		"release lost, and did not":    {[]operation{take(1, done), give(1, lost), refused(2, 1)}, true},
		"release lost, then both":      {[]operation{take(1, done), give(1, lost), take(2, done), refused(3, 1)}, false},
	} {
		for i := range row.ops {
			op := &row.ops[i]
			op.called, op.returned = time.Duration(2*i), time.Duration(2*i+1)
			if op.verdict == lost {
				op.returned = never
			}
		}
		if err := history(row.ops).linearizable(); (err == nil) != row.want {
			t.Errorf("%s: explained %v, want %v: %v", name, err == nil, row.want, err)
		}
	}
}

// doctored is the history with one address given to a second holder while the first one has it; false where nothing in it
// lends itself to that.
func (h history) doctored() (history, bool) {
	forged := slices.Clone(h)
	has := map[netip.Addr]*operation{}
	for i := range forged {
		op := &forged[i]
		switch {
		case op.give || op.verdict == lost:
			delete(has, op.about())
		case op.verdict == taken && has[op.asked] != nil && has[op.asked].by == op.holder && has[op.asked].returned < op.called && i > len(h)/2:
			op.verdict, op.addr = done, op.asked // what was refused was granted
			return forged, true
		case op.verdict == done:
			has[op.addr] = op
		}
	}
	return nil, false
}
