package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"berth/internal/admin/api"
	"berth/internal/atomicfile"
	"berth/internal/ipam"
	"berth/store"
)

// TokenFile is the name of the tokens' file in the directory of the state. Backups do not contain it, because a
// restored state must not make removed tokens valid again.
const TokenFile = "tokens.json"

// tokenFileVersion is the version at the beginning of the file.
const tokenFileVersion = 1

// tokenFile is the content of the file.
type tokenFile struct {
	Version int           `json:"version"`
	Tokens  []storedToken `json:"tokens"`
}

type storedToken struct {
	Name    string    `json:"name"`
	Role    api.Role  `json:"role"`
	Account string    `json:"account,omitempty"`
	Since   time.Time `json:"account_since,omitzero"` // when the account was created
	SHA256  string    `json:"sha256"`                 // of the token's text, in hexadecimal digits
	Created time.Time `json:"created"`
	By      string    `json:"by"`
	Expires time.Time `json:"expires,omitzero"`
}

// OpenTokens reads the tokens of a file. A missing file has none. It refuses a damaged file, and one that somebody else
// may have written, because its writer could grant access.
func OpenTokens(path string, now func() time.Time) (*Tokens, error) {
	t := &Tokens{path: path, now: now}
	text, err := readOwn(path, os.Geteuid())
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the tokens of the admin API: %w", err)
	}
	all, err := readTokens(text)
	if err != nil {
		return nil, fmt.Errorf("the tokens of the admin API, in %s, cannot be read: %w; repair the file, or move it "+
			"away and create the tokens again", path, err)
	}
	t.all.Store(&all)
	return t, nil
}

// readOwn reads a file that only root and one user can write.
func readOwn(path string, uid int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link: replace it with the file itself", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case !ok || st.Uid != 0 && int(st.Uid) != uid:
		return nil, fmt.Errorf("%s belongs to neither root nor the daemon's user: see who put it there, then chown it",
			path)
	case mode.Perm()&0o022 != 0:
		return nil, fmt.Errorf("users other than the owner can write %s (mode %o): check its contents, then "+
			"chmod 600 it", path, mode.Perm())
	}
	return io.ReadAll(f)
}

func readTokens(text []byte) ([]*token, error) {
	var file tokenFile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more text follows after its end")
	}
	if file.Version != tokenFileVersion {
		return nil, fmt.Errorf("it has version %d, but this Berth reads version %d", file.Version, tokenFileVersion)
	}
	var all []*token
	for _, stored := range file.Tokens {
		one, err := stored.token()
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *token) int { return strings.Compare(a.Name, b.Name) })
	for i := range all[:max(len(all)-1, 0)] {
		if all[i].Name == all[i+1].Name {
			return nil, fmt.Errorf("it has two tokens named %s", all[i].Name)
		}
	}
	return all, nil
}

func (s *storedToken) token() (*token, error) {
	if err := ipam.CheckName("token", s.Name); err != nil {
		return nil, err
	}
	if err := checkRole(s.Role, s.Account); err != nil {
		return nil, fmt.Errorf("the token %s: %w", s.Name, err)
	}
	hash, err := hex.DecodeString(s.SHA256)
	if err != nil || len(hash) != sha256.Size {
		return nil, fmt.Errorf("the hash of the token %s is not %d hexadecimal digits", s.Name, 2*sha256.Size)
	}
	return newToken(api.TokenInfo{Name: s.Name, Role: s.Role, Account: s.Account, Created: s.Created, By: s.By,
		Expires: s.Expires}, s.Since,
		[sha256.Size]byte(hash)), nil
}

// Restore writes the file again if it was removed or replaced, and returns its path then. A removed token stays
// removed, whatever the file contains.
func (t *Tokens) Restore() (path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path == "" {
		return "", nil
	}
	want, err := encodeTokens(t.list())
	if err != nil {
		return "", err
	}
	switch has, err := readOwn(t.path, os.Geteuid()); {
	case err == nil && bytes.Equal(has, want), errors.Is(err, fs.ErrNotExist) && len(t.list()) == 0:
		return "", nil
	}
	return t.path, t.save(t.list())
}

// save replaces the file, readable only by its owner. After a crash the old or the new content is there.
func (t *Tokens) save(all []*token) error {
	if t.path == "" {
		return nil
	}
	text, err := encodeTokens(all)
	if err != nil {
		return err
	}
	err = atomicfile.Write(t.path, text)
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	if err != nil {
		return fmt.Errorf("the tokens could not be written: %w", err)
	}
	return nil
}

// encodeTokens returns the content of the file.
func encodeTokens(all []*token) ([]byte, error) {
	file := tokenFile{Version: tokenFileVersion, Tokens: []storedToken{}}
	for _, one := range all {
		file.Tokens = append(file.Tokens, storedToken{Name: one.Name, Role: one.Role, Account: one.Account,
			Since: one.since, SHA256: hex.EncodeToString(one.hash[:]),
			Created: one.Created, By: one.By, Expires: one.Expires})
	}
	text, err := json.MarshalIndent(file, "", "  ")
	return append(text, '\n'), err
}
