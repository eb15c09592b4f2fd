package nft

import (
	"fmt"
	"time"

	"github.com/google/nftables"
	"sigs.k8s.io/knftables"
)

// atOnce is the maximum number of elements in one message, whose list has a length of sixteen bits.
const atOnce = 500

// transaction collects changes of elements. All of them are made, or none.
type transaction struct {
	kernel kernel
	empty  bool
	err    error
}

func (k kernel) begin() *transaction { return &transaction{kernel: k, empty: true} }

// remove removes elements. A missing element makes the transaction fail.
func (t *transaction) remove(p place, s set, all elements) {
	t.put(p, s, all, 0, t.kernel.conn.SetDeleteElements)
}

// add adds elements, with a timeout if it is not zero.
func (t *transaction) add(p place, s set, all elements, timeout time.Duration) {
	t.put(p, s, all, timeout, t.kernel.conn.SetAddElements)
}

func (t *transaction) put(p place, s set, all elements, timeout time.Duration,
	do func(*nftables.Set, []nftables.SetElement) error) {
	list := make([]nftables.SetElement, 0, atOnce+1)
	send := func() {
		if len(list) == 0 {
			return
		}
		t.empty = false
		err := do(s.inKernel(p.family), list)
		if err != nil && t.err == nil {
			t.err = fmt.Errorf("cannot write elements of %s: %w", s.name, err)
		}
		list = list[:0]
	}
	for key, value := range all {
		one := nftables.SetElement{Key: []byte(key), Timeout: timeout}
		if s.isMap {
			one.Val = []byte(value)
		}
		list = append(list, one)
		if s.interval && value != "" {
			list = append(list, nftables.SetElement{Key: []byte(value), IntervalEnd: true})
		}
		if len(list) >= atOnce {
			send()
		}
	}
	send()
}

// commit executes the transaction.
func (t *transaction) commit() error {
	if t.empty {
		return nil
	}
	err := t.kernel.conn.Flush() // also discards the changes if they cannot be sent
	if t.err != nil {
		return t.err
	}
	if err != nil {
		return fmt.Errorf("nftables refused the transaction: %w", err)
	}
	return nil
}

// inKernel returns the set for the library.
func (s set) inKernel(family knftables.Family) *nftables.Set {
	return &nftables.Set{
		Table:      &nftables.Table{Name: tableName, Family: families[family]},
		Name:       s.name,
		IsMap:      s.isMap,
		Interval:   s.interval,
		HasTimeout: s.timed,
	}
}
