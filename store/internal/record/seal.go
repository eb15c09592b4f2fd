// Package record holds rules for single records. All backends of store.Store share them. seal.go adds the checksum to a
// value; rules.go decides which writes a transaction accepts.
package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"berth/store"
)

// SealSize is the number of bytes before a sealed value: the format byte and the checksum, big-endian.
const SealSize = 5

// sealFormat is the only format of a record. A later format gets another byte, so each record shows its format.
const sealFormat = 1

// castagnoli is built once by the standard library. amd64 and arm64 have an instruction for this polynomial.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the format, the key's length, the key and the value. So it detects flipped bits, a value under
// another key, and a moved boundary between key and value.
func checksum(key, value []byte) uint32 {
	start := uint32(len(key))<<8 | sealFormat
	return crc32.Update(crc32.Update(start, castagnoli, key), castagnoli, value)
}

// AppendSealed appends the stored form of value under key to dst.
func AppendSealed(dst, key, value []byte) []byte {
	dst = append(dst, sealFormat)
	dst = binary.BigEndian.AppendUint32(dst, checksum(key, value))
	return append(dst, value...)
}

// Unseal returns the value in its stored form. Both share memory. The error for a damaged value wraps store.ErrCorrupt.
func Unseal(key, stored []byte) ([]byte, error) {
	if len(stored) < SealSize {
		return nil, fmt.Errorf("%w: the record %s has only %d bytes, fewer than its checksum needs", store.ErrCorrupt,
			Quote(key), len(stored))
	}
	if stored[0] != sealFormat {
		return nil, fmt.Errorf("%w: the record %s has the unknown format %d", store.ErrCorrupt, Quote(key), stored[0])
	}
	value := stored[SealSize:len(stored):len(stored)]
	if binary.BigEndian.Uint32(stored[1:SealSize]) != checksum(key, value) {
		return nil, fmt.Errorf("%w: the record %s does not match its checksum", store.ErrCorrupt, Quote(key))
	}
	return value, nil
}

// Quote prints a key for a person. Keys are mostly text, and other bytes are escaped.
func Quote(key []byte) string {
	const most = 128
	if len(key) > most {
		return fmt.Sprintf("%q... (%d bytes)", key[:most], len(key))
	}
	return fmt.Sprintf("%q", key)
}
