package bolt

import (
	"fmt"

	"berth/store/internal/record"
)

// unseal returns the value in its stored form. Both share memory.
func unseal(key, stored []byte) ([]byte, error) {
	value, err := record.Unseal(key, stored)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, adviceRecord)
	}
	return value, nil
}

const (
	adviceRecord  = ": `berth state check` lists all damage; `berth state restore FILE` puts back a backup"
	adviceRestore = ": put a backup in its place with `berth state restore FILE`"
)
