package etcd

import (
	"encoding/binary"
	"errors"
)

// A chunk is several writes in one value, a part of what a large transaction writes (there by their places) or a bundle
// (there by the keys of the records): for each write the length of its key, the key,
// the length of its sealed value and 1, or 0 for a deletion, and the sealed value. The lengths are varints.

// chunks lays writes out in chunks of about size bytes; a write is never divided.
func chunks(all []*write, size int) [][]byte {
	var list [][]byte
	var now []byte
	for _, w := range all {
		if len(now) > 0 && len(now)+w.size() > size {
			list, now = append(list, now), nil
		}
		now = binary.AppendUvarint(now, uint64(len(w.key)))
		now = append(now, w.key...)
		if w.sealed == nil {
			now = append(now, 0)
			continue
		}
		now = binary.AppendUvarint(now, uint64(len(w.sealed))+1)
		now = append(now, w.sealed...)
	}
	return append(list, now)
}

var errChunk = errors.New("what several writes were put together in cannot be read")

// parseChunk returns the writes in a chunk, without their values. Their slices share its memory.
func parseChunk(chunk []byte) ([]*write, error) {
	var all []*write
	for len(chunk) > 0 {
		w := &write{}
		n, size := binary.Uvarint(chunk)
		if size <= 0 || n > uint64(len(chunk)-size) {
			return nil, errChunk
		}
		w.key, chunk = chunk[size:size+int(n):size+int(n)], chunk[size+int(n):]
		n, size = binary.Uvarint(chunk)
		if size <= 0 || n > uint64(len(chunk)-size)+1 {
			return nil, errChunk
		}
		chunk = chunk[size:]
		if n > 0 {
			w.sealed, chunk = chunk[:n-1:n-1], chunk[n-1:]
		}
		all = append(all, w)
	}
	return all, nil
}
