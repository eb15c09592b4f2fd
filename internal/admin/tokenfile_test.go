package admin

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

func openTokens(t *testing.T, path string) *Tokens {
	t.Helper()
	all, err := OpenTokens(path, time.Now)
	must(t, err)
	return all
}

// TestTokensAreKept: a token survives a restart of the daemon, as a hash that only its owner can read.
func TestTokensAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), TokenFile)
	before := openTokens(t, path)
	var made []api.NewToken
	for _, req := range []api.TokenRequest{{Name: "ci", Role: api.RoleAdmin, NoEnd: true},
		{Name: "Look", Role: api.RoleReadOnly, Lifetime: ipam.Duration(time.Hour)}, {Name: "a.b-c_d", Role: api.RoleAdmin},
		{Name: "shop", Account: "shop", NoEnd: true}} {
		one, err := before.create(req, time.Unix(1, 500).UTC(), "root (uid 0)")
		must(t, err)
		made = append(made, one)
	}
	_, err := before.Remove("a.b-c_d")
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	text, err := os.ReadFile(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 || strings.Contains(string(text), api.TokenPrefix) {
		t.Errorf("the file, of mode %v:\n%s", info.Mode(), text)
	}
	for _, one := range made {
		if secret := strings.TrimPrefix(one.Token, api.TokenPrefix); len(secret) != 64 ||
			strings.Contains(string(text), secret) {
			t.Errorf("the token %q and the file:\n%s", one.Token, text)
		}
	}
	after := openTokens(t, path)
	if got, want := after.List(), before.List(); !slices.Equal(got, want) || len(got) != 3 {
		t.Errorf("after a restart: %+v, before: %+v", got, want)
	}
	for i, want := range []*caller{{actor: "token ci", role: api.RoleAdmin},
		{actor: "token Look", role: api.RoleReadOnly}, nil,
		{actor: "token shop", role: api.RoleAccount, account: "shop", since: time.Unix(1, 500)}} {
		got, p := after.caller(made[i].Token)
		if want == nil && p == nil || want != nil && (p != nil || got.actor != want.actor || got.role != want.role ||
			got.account != want.account || want.account != "" && !got.since.Equal(want.since)) {
			t.Errorf("%s: %+v, %v", made[i].Name, got, p)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("beside the file there is %q", left)
	}
}

// TestDamagedTokenFile: a file that cannot be read as a whole is refused. An empty file does not mean "no tokens".
func TestDamagedTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), TokenFile)
	hash := strings.Repeat("ab", sha256.Size)
	words := strings.NewReplacer("$A", `{"name":"a","role":"admin",$END`, "$B", `{"name":"b","role":"read-only",$END`,
		"$HEAD", `{"version":1,"tokens":[`)
	for c := range ipamtest.Rows(2, `
		$HEAD]} | ok
		$HEAD$A]} | ok
		$HEAD$B,$A]} | ok
		$NOTHING
		{}
		null
		$HEAD$A
		$HEAD]}$HEAD]}
		$HEAD{"name":"a","role":"root",$END]}
		$HEAD{"name":"a","role":"",$END]}
		$HEAD{"name":"","role":"admin",$END]}
		$HEAD{"name":"../a","role":"admin",$END]}
		$HEAD{"name":"a","role":"admin","sha256":"abab","created":"2026-01-31T08:00:00Z","by":"x"}]}
		$HEAD{"name":"a","role":"admin","sha256":"","created":"2026-01-31T08:00:00Z","by":"x"}]}
		$HEAD{"name":"a","role":"admin","sha256":"g$HASH","created":"2026-01-31T08:00:00Z","by":"x"}]}
		$HEAD$A,$A]}
		{"version":2,"tokens":[]}
		{"version":1,"tokens":[],"roles":[]}
		$HEAD{"name":"a","role":"admin","sha256":"a$HASH","created":"yesterday"}]}
	`) {
		text := strings.NewReplacer("$END", `"sha256":"`+hash+`","created":"2026-01-31T08:00:00Z","by":"x"}`,
			"$HASH", hash[1:], "$NOTHING", "").Replace(words.Replace(c[0]))
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := OpenTokens(path, time.Now); (err == nil) != (c[1] == "ok") {
			t.Errorf("%s: %v", text, err)
		} else if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not say which file: %v", err)
		}
	}
}

// TestTokenFileCannotBeWritten: an unwritten token does not exist. A removed one is refused at once, written or
// not.
func TestTokenFileCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o700))
	all := openTokens(t, filepath.Join(dir, TokenFile))
	made, err := all.create(api.TokenRequest{Name: "ci", Role: api.RoleAdmin}, time.Time{}, "x")
	must(t, err)
	must(t, os.Rename(dir, dir+".away"))
	other := api.TokenRequest{Name: "other", Role: api.RoleAdmin}
	if _, err := all.create(other, time.Time{}, "x"); err == nil || len(all.List()) != 1 {
		t.Errorf("a token that is nowhere: %v, %+v", err, all.List())
	}
	const again = "would accept it again after a restart"
	if _, err := all.Remove("ci"); err == nil || !strings.Contains(err.Error(), again) {
		t.Errorf("removed, and not from the file: %v", err)
	}
	if _, p := all.caller(made.Token); p == nil {
		t.Error("it is taken all the same")
	}
	must(t, os.Rename(dir+".away", dir))
	_, err = all.Remove("ci")
	must(t, err)
	if again := openTokens(t, filepath.Join(dir, TokenFile)); len(again.List()) != 0 {
		t.Errorf("it came back: %+v", again.List())
	}
}

// TestTokensFromManySides: of several callers that create or remove a token at once, one succeeds.
func TestTokensFromManySides(t *testing.T) {
	path := filepath.Join(t.TempDir(), TokenFile)
	all := openTokens(t, path)
	var wg sync.WaitGroup
	var mu sync.Mutex
	created, removed := map[string]int{}, map[string]int{}
	for range 8 {
		wg.Go(func() {
			for i := range 20 {
				name := fmt.Sprintf("t%d", i)
				made, err := all.create(api.TokenRequest{Name: name, Role: api.RoleAdmin}, time.Time{}, "x")
				if err != nil && code(err) != api.CodeInUse {
					t.Error(err)
				}
				if err == nil {
					if who, p := all.caller(made.Token); p == nil && who.actor != "token "+name {
						t.Errorf("%s is %s", name, who.actor)
					}
				}
				_, gone := all.Remove(name)
				if gone != nil && code(gone) != api.CodeNotFound {
					t.Error(gone)
				}
				mu.Lock()
				if err == nil {
					created[name]++
				}
				if gone == nil {
					removed[name]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for name, n := range created {
		if removed[name] != n {
			t.Errorf("%s was created %d times and removed %d times", name, n, removed[name])
		}
	}
	if again := openTokens(t, path); len(all.List())+len(again.List()) != 0 {
		t.Errorf("left: %+v, on disk %+v", all.List(), again.List())
	}
}

func TestTokenBound(t *testing.T) {
	var all Tokens
	for i := range maxTokens {
		_, err := all.create(api.TokenRequest{Name: fmt.Sprintf("t%d", i), Role: api.RoleAdmin}, time.Time{}, "x")
		must(t, err)
	}
	more := api.TokenRequest{Name: "more", Role: api.RoleAdmin}
	if _, err := all.create(more, time.Time{}, "x"); code(err) != api.CodeExhausted {
		t.Errorf("one too many: %v", err)
	}
}

// FuzzTokenFile: any content of the file is refused, or read as tokens that are saved in the same form.
func FuzzTokenFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"tokens":[{"name":"a","role":"admin","sha256":"` + strings.Repeat("0", 64) +
		`","created":"2026-01-31T08:00:00Z","by":"x"}]}`))
	f.Add([]byte(`{"version":1,"tokens":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := readTokens(text)
		if err != nil {
			return
		}
		for i, one := range all {
			if ipam.CheckName("token", one.Name) != nil || one.Role != api.RoleAdmin && one.Role != api.RoleReadOnly ||
				i > 0 && all[i-1].Name >= one.Name {
				t.Fatalf("%q was read as %+v", text, one.TokenInfo)
			}
		}
	})
}
