package golden

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"berth/store"
)

// WriteRecords writes a golden file of records, one a line in hexadecimal.
func WriteRecords(t testing.TB, name, about string, all []store.Record) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n", about)
	for _, rec := range all {
		fmt.Fprintf(&text, "%x %x\n", rec.Key, rec.Value)
	}
	Write(t, name, []byte(text.String()))
}

// Records reads a golden file of records.
func Records(t testing.TB, name string) (all []store.Record) {
	t.Helper()
	for line := range strings.Lines(string(Read(t, name))) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		k, err := hex.DecodeString(key)
		v, err2 := hex.DecodeString(value)
		if err != nil || err2 != nil || len(k) == 0 {
			t.Fatalf("%s: %q: %v, %v", name, line, err, err2)
		}
		all = append(all, store.Record{Key: k, Value: v})
	}
	return all
}
