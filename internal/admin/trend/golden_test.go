package trend

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"berth/internal/golden"
)

// TestGoldenTrend: the use that 1.0 recorded is shown.
func TestGoldenTrend(t *testing.T) {
	now, err := json.Marshal(map[string]*series{key("local", "front", "10.20.0.0/24", "10.20.0.0/25"): {
		{At: 29455384, Values: []byte{1, unknown, 3}}, {At: 1963692, Values: []byte{4}}, {At: 490923, Values: []byte{100, 0}}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trend.json")
	if err := os.WriteFile(path, golden.Bytes(t, "trend.json", now), 0o600); err != nil {
		t.Fatal(err)
	}
	got := Open(path, nil).Of("local", "front", "10.20.0.0/24", "10.20.0.0/25")
	if want := (History{Hour: []int{1, -1, 3}, Day: []int{4}, Week: []int{100, 0}}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
