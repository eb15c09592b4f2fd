package driver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func macText(n int) string {
	return fmt.Sprintf("02:42:00:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff)
}

func encode(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return string(raw)
}

func decodeReply(t testing.TB, reply string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(reply), v); err != nil {
		t.Fatalf("the answer is not JSON: %v: %s", err, reply)
	}
}

// wantText fails the test if a refusal does not contain all parts.
func wantText(t testing.TB, refused string, parts ...string) {
	t.Helper()
	if refused == "" {
		t.Errorf("it was not refused; want an error with %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(refused, part) {
			t.Errorf("the error says %q; want %q in it", refused, part)
		}
	}
}
