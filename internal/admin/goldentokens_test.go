package admin

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/golden"

	"github.com/google/go-cmp/cmp"
)

// TestGoldenTokens: a token that 1.0 created is still good, with its role and its account.
func TestGoldenTokens(t *testing.T) {
	const text = "berth_of_1.0"
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now, err := json.Marshal(tokenFile{Version: tokenFileVersion, Tokens: []storedToken{
		{Name: "ci", Role: api.RoleReadOnly, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("another"))), Created: made,
			By: "root"},
		{Name: "shop", Role: api.RoleAccount, Account: "shop", Since: made,
			SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text))), Created: made, By: "uid 1000",
			Expires: made.Add(time.Hour)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), TokenFile)
	if err := os.WriteFile(path, golden.Bytes(t, TokenFile, now), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := OpenTokens(path, func() time.Time { return made })
	if err != nil {
		t.Fatal(err)
	}
	want := []api.TokenInfo{{Name: "ci", Role: api.RoleReadOnly, Created: made, By: "root"},
		{Name: "shop", Role: api.RoleAccount, Account: "shop", Created: made, By: "uid 1000", Expires: made.Add(time.Hour)}}
	if diff := cmp.Diff(want, tokens.List()); diff != "" {
		t.Errorf("-1.0 +now:\n%s", diff)
	}
	if who, problem := tokens.caller(text); problem != nil || who.role != api.RoleAccount || who.account != "shop" {
		t.Errorf("%+v, %v", who, problem)
	}
}
