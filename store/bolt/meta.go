package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// What is read of a bbolt file by hand (go.etcd.io/bbolt, internal/common: page.go, meta.go, bucket.go): the two meta
// pages, and the bounds of entries (child.go). bbolt does not say that one of the two is damaged: it takes the other
// one, and the last commit is gone. Numbers are in the order of the machine that wrote the file.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageHeader  = 16 // id 8, flags 2, count 2, overflow 4
	elementSize = 16 // branch: pos 4, ksize 4, page 8; leaf: flags 4, pos 4, ksize 4, vsize 4
	bucketSize  = 16 // root page 8, or 0 where its page follows; sequence 8
	metaSize    = 64

	flagBranch = 0x01
	flagLeaf   = 0x02
	flagMeta   = 0x04

	leafBucket = 0x01
)

var order = binary.NativeEndian

// meta is a meta page: the root of one committed state. There are two, written in turn.
type meta struct {
	pageSize int
	pages    uint64 // number of pages in use, free ones included
	txid     uint64
}

// parseMeta reads page number id, of which b holds at least the beginning.
func parseMeta(b []byte, id uint64) (meta, error) {
	if len(b) < pageHeader+metaSize {
		return meta{}, fmt.Errorf("is cut off")
	}
	m := b[pageHeader : pageHeader+metaSize]
	sum := fnv.New64a()
	_, _ = sum.Write(m[:56]) // a hash never fails
	switch {
	case order.Uint32(m) != boltMagic:
		return meta{}, fmt.Errorf("does not begin like one")
	case order.Uint32(m[4:]) != boltVersion:
		return meta{}, fmt.Errorf("has the bbolt version %d, not %d", order.Uint32(m[4:]), boltVersion)
	case order.Uint64(m[56:]) != sum.Sum64():
		return meta{}, fmt.Errorf("does not match its checksum")
	case order.Uint64(b) != id || order.Uint16(b[8:]) != flagMeta:
		return meta{}, fmt.Errorf("has a wrong page header")
	}
	r := meta{
		pageSize: int(order.Uint32(m[8:])),
		pages:    order.Uint64(m[40:]),
		txid:     order.Uint64(m[48:]),
	}
	if r.pageSize < 1024 || r.pageSize > 64<<10 || r.pageSize&(r.pageSize-1) != 0 {
		return meta{}, fmt.Errorf("names the page size %d", r.pageSize)
	}
	return r, nil
}

// metas are the two meta pages of a file, each with what is wrong with it.
type metas struct {
	page [2]meta
	err  [2]error
}

// readMetas reads both meta pages. The second one is where the first one's page size puts it, or, when the first one is
// damaged, wherever a page that may follow it is found.
func readMetas(r io.ReaderAt) metas {
	var ms metas
	b := make([]byte, pageHeader+metaSize)
	ms.page[0], ms.err[0] = readMeta(r, b, 0, 0)
	if ms.err[0] == nil {
		ms.page[1], ms.err[1] = readMeta(r, b, int64(ms.page[0].pageSize), 1)
		return ms
	}
	ms.page[1], ms.err[1] = readMeta(r, b, int64(os.Getpagesize()), 1)
	for size := int64(1024); size <= 64<<10 && ms.err[1] != nil; size *= 2 {
		if m, err := readMeta(r, b, size, 1); err == nil && int64(m.pageSize) == size {
			ms.page[1], ms.err[1] = m, nil
		}
	}
	return ms
}

func readMeta(r io.ReaderAt, b []byte, at int64, id uint64) (meta, error) {
	n, err := r.ReadAt(b, at)
	if err != nil && err != io.EOF {
		return meta{}, err
	}
	return parseMeta(b[:n], id)
}

// newest returns the meta page of the last commit; ok is false when neither can be used.
func (ms metas) newest() (m meta, ok bool) {
	switch {
	case ms.err[0] != nil && ms.err[1] != nil:
		return meta{}, false
	case ms.err[0] != nil:
		return ms.page[1], true
	case ms.err[1] != nil || ms.page[0].txid > ms.page[1].txid:
		return ms.page[0], true
	}
	return ms.page[1], true
}

// committedBefore says that the file, as the kernel shows it, holds two sound meta pages that are older than
// transaction id.
func (h *handle) committedBefore(id uint64) bool {
	ms := readMetas(h.reader)
	return ms.err[0] == nil && ms.err[1] == nil && ms.page[0].txid < id && ms.page[1].txid < id
}

func fileSize(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
