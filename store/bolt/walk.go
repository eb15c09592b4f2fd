package bolt

import (
	"bytes"
	"errors"
	"fmt"

	"berth/store/internal/record"
)

// subtree reads the value of a bucket's entry.
func (c *checker) subtree(e element) (subtree, bool) {
	if !e.bucket || len(e.value) < bucketSize {
		c.problem("the entry %s of the root is not a bucket", record.Quote(e.key))
		return subtree{}, false
	}
	t := subtree{root: order.Uint64(e.value)}
	if t.root == 0 {
		t.inline = bytes.Clone(e.value[bucketSize:])
	}
	return t, true
}

// walk visits all entries of a tree and checks its pages: kinds, bounds, order of the keys, each page met once only.
func (c *checker) walk(t subtree, what string, fn visit) {
	c.last = nil
	if t.root != 0 {
		c.descend(t.root, 0, nil, nil, fn)
		return
	}
	p, err := parsePage(t.inline)
	if err != nil || p.flags != flagLeaf {
		c.problem("%s is damaged", what)
		return
	}
	c.leaf(p, nil, nil, fn)
}

// descend visits the page id and all below it, whose keys lie from low to before high (nil: no bound).
func (c *checker) descend(id uint64, depth int, low, high []byte, fn visit) {
	if depth > maxDepth {
		c.problem("page %d lies %d levels deep", id, depth)
		return
	}
	p, err := c.read(id, depth)
	if isReadError(err) {
		c.fatal = unreadable(c.report.Path, id, err)
		return
	}
	if err != nil {
		c.problem("page %d %v", id, err)
		return
	}
	if p.flags == flagLeaf {
		c.leaf(p, low, high, fn)
		c.keep = append(c.keep[:0], c.last...)
		if c.last != nil {
			c.last = c.keep
		}
		return
	}
	if p.count == 0 {
		c.problem("page %d has no entries", id)
	}
	for i := range p.count {
		if c.ctx.Err() != nil || c.more > 0 || c.fatal != nil {
			return
		}
		e, end, err := p.branch(i, high)
		switch {
		case err != nil:
			c.problem("page %d %v", id, err)
			return
		case i == 0 && bytes.Compare(e.key, low) < 0,
			i > 0 && bytes.Compare(e.key, c.last) <= 0,
			high != nil && bytes.Compare(e.key, high) >= 0:
			c.problem("page %d has its entry %d out of order", id, i)
			return
		}
		c.descend(e.child, depth+1, e.key, end, fn)
	}
}

// branch returns entry i of a branch page and the key that all keys below it are smaller than.
func (p page) branch(i int, high []byte) (e element, end []byte, err error) {
	if e, err = p.element(i); err != nil {
		return e, high, err
	} else if i+1 >= p.count {
		return e, high, nil
	}
	next, err := p.element(i + 1)
	return e, next.key, err
}

func (c *checker) leaf(p page, low, high []byte, fn visit) {
	for i := range p.count {
		e, err := p.element(i)
		switch {
		case err != nil:
			c.problem("page %d %v", p.id, err)
			return
		case len(e.key) == 0:
			c.problem("page %d has an empty key at entry %d", p.id, i)
			return
		case c.last != nil && bytes.Compare(c.last, e.key) >= 0,
			low != nil && bytes.Compare(e.key, low) < 0,
			high != nil && bytes.Compare(e.key, high) >= 0:
			c.problem("page %d has the key %s out of order", p.id, record.Quote(e.key))
			return
		}
		c.last = e.key
		fn(e)
	}
}

// read reads a page of the tree into the buffer of its level.
func (c *checker) read(id uint64, depth int) (page, error) {
	p, err := c.readPage(id, depth)
	if err != nil {
		return page{}, err
	}
	if p.flags != flagBranch && p.flags != flagLeaf {
		return page{}, fmt.Errorf("is no part of a tree (flags %#x)", p.flags)
	}
	if !c.mark(id, uint64(len(p.data)/c.meta.pageSize)) {
		return page{}, errors.New("is used twice")
	}
	return p, nil
}

func (c *checker) readPage(id uint64, depth int) (page, error) {
	if id < 2 || id >= c.meta.pages {
		return page{}, errors.New("lies outside of the file")
	}
	size := c.meta.pageSize
	for len(c.bufs) <= depth {
		c.bufs = append(c.bufs, make([]byte, size))
	}
	b := c.bufs[depth]
	at := int64(id) * int64(size)
	if _, err := c.r.ReadAt(b[:size], at); err != nil {
		return page{}, fmt.Errorf("cannot be read: %w", err)
	}
	if order.Uint64(b) != id {
		return page{}, fmt.Errorf("says that it is page %d", order.Uint64(b))
	}
	more := uint64(order.Uint32(b[12:]))
	if id+more >= c.meta.pages {
		return page{}, errors.New("reaches out of the file")
	}
	if need := int(more+1) * size; need > len(b) {
		b = make([]byte, need)
		c.bufs[depth] = b
		if _, err := c.r.ReadAt(b[:need], at); err != nil {
			return page{}, fmt.Errorf("cannot be read: %w", err)
		}
	} else if more > 0 {
		if _, err := c.r.ReadAt(b[size:need], at+int64(size)); err != nil {
			return page{}, fmt.Errorf("cannot be read: %w", err)
		}
	}
	return parsePage(b[:int(more+1)*size])
}

func parsePage(b []byte) (page, error) {
	if len(b) < pageHeader {
		return page{}, errors.New("is cut off")
	}
	return page{id: order.Uint64(b), flags: order.Uint16(b[8:]), count: int(order.Uint16(b[10:])), data: b}, nil
}

// mark notes that the pages from id on were met, and answers false when one of them was before.
func (c *checker) mark(id, n uint64) bool {
	for i := id; i < id+n; i++ {
		if i >= c.meta.pages || c.seen[i/64]&(1<<(i%64)) != 0 {
			return false
		}
		c.seen[i/64] |= 1 << (i % 64)
	}
	return true
}
