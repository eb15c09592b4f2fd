package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"berth/store"
)

// sealSize is what seal puts before a value: the format byte and the checksum, big-endian.
const sealSize = 5

// sealFormat is the only record format there is. A later one takes another byte and is told apart record by record.
const sealFormat = 1

// castagnoli is a table that the standard library builds once; amd64 and arm64 have an instruction for this polynomial.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the format, the key's length, the key and the value, so a value that turns up under another key, or a
// boundary between the two that has moved, is noticed as well as a flipped bit.
func checksum(key, value []byte) uint32 {
	start := uint32(len(key))<<8 | sealFormat
	return crc32.Update(crc32.Update(start, castagnoli, key), castagnoli, value)
}

// appendSealed appends the stored form of value under key to dst.
func appendSealed(dst, key, value []byte) []byte {
	dst = append(dst, sealFormat)
	dst = binary.BigEndian.AppendUint32(dst, checksum(key, value))
	return append(dst, value...)
}

// unseal returns the value inside its stored form; it shares memory with it.
func unseal(key, stored []byte) ([]byte, error) {
	if len(stored) < sealSize {
		return nil, fmt.Errorf("%w: the record %s holds %d bytes, fewer than its checksum takes%s",
			store.ErrCorrupt, quoteKey(key), len(stored), adviceRecord)
	}
	if stored[0] != sealFormat {
		return nil, fmt.Errorf("%w: the record %s has the unknown format %d%s",
			store.ErrCorrupt, quoteKey(key), stored[0], adviceRecord)
	}
	value := stored[sealSize:len(stored):len(stored)]
	if binary.BigEndian.Uint32(stored[1:sealSize]) != checksum(key, value) {
		return nil, fmt.Errorf("%w: the record %s does not match its checksum%s",
			store.ErrCorrupt, quoteKey(key), adviceRecord)
	}
	return value, nil
}

const (
	adviceRecord  = ": `berth fsck` lists everything that is damaged, `berth restore FILE` puts a backup in its place"
	adviceRestore = ": put a backup in its place with `berth restore FILE`"
)

// quoteKey prints a key for a person: keys are mostly text, and what is not comes out escaped.
func quoteKey(key []byte) string {
	const most = 128
	if len(key) > most {
		return fmt.Sprintf("%q... (%d bytes)", key[:most], len(key))
	}
	return fmt.Sprintf("%q", key)
}
