package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// Parts of a bbolt file that are read directly: the two meta pages, and the bounds of entries (child.go). The layout is
// from go.etcd.io/bbolt, internal/common: page.go, meta.go, bucket.go. bbolt does not report that one meta page is
// damaged. It uses the other one, and the last commit is lost. Numbers are in the byte order of the machine that wrote
// the file.
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

// meta is a meta page: the root of one committed state. There are two, which are written in turn.
type meta struct {
	pageSize int
	pages    uint64 // number of used and free pages
	txid     uint64
}

// parseMeta parses the meta page with number id. b has at least its beginning.
func parseMeta(b []byte, id uint64) (meta, error) {
	if len(b) < pageHeader+metaSize {
		return meta{}, fmt.Errorf("is cut off")
	}
	m := b[pageHeader : pageHeader+metaSize]
	sum := fnv.New64a()
	_, _ = sum.Write(m[:56]) // a hash never fails
	switch {
	case order.Uint32(m) != boltMagic:
		return meta{}, fmt.Errorf("does not begin like a meta page")
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
		return meta{}, fmt.Errorf("has the invalid page size %d", r.pageSize)
	}
	return r, nil
}

// metas are the two meta pages of a file, each with its error.
type metas struct {
	page [2]meta
	err  [2]error
}

// readMetas reads both meta pages. The first one's page size gives the place of the second. If the first one is
// damaged, readMetas tries the possible page sizes.
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

// newest returns the meta page of the last commit; ok is false if neither is usable.
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

// committedBefore reports whether the kernel's view of the file has two valid meta pages that are older than
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
