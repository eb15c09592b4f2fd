package stores

import (
	"encoding/hex"
	"testing"
	"time"

	"berth/internal/golden"
	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

// TestGoldenCopy reads the mark of a copy that Berth 1.0 began. The golden state has none: it would be refused.
func TestGoldenCopy(t *testing.T) {
	mark := &copyMark{ID: ipam.ID{1}, Space: "lab", Host: "h1", HostID: ipam.ID{2}, Stage: copyReleased,
		Command: "berth state move", Actor: "root", Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Accounts: []string{"shop"}}
	now, err := ipam.EncodeJSON(mark)
	if err != nil {
		t.Fatal(err)
	}
	var got copyMark
	raw, err := hex.DecodeString(string(golden.Bytes(t, "copy.txt", []byte(hex.EncodeToString(now)))))
	if err != nil {
		t.Fatal(err)
	}
	if err := ipam.DecodeJSON("a copy", raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mark, &got); diff != "" {
		t.Errorf("-1.0 +now:\n%s", diff)
	}
}
