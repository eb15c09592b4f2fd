package scene

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// entry is a file of an archive.
type entry struct {
	tar.Header
	content string
}

// packed returns an archive as an engine makes it.
func packed(t *testing.T, all []entry) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range all {
		e.Size, e.Format = int64(len(e.content)), tar.FormatPAX
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

// files returns the archive of the tests: a directory, files, a hard link and a symbolic link.
func files() []entry {
	at := time.Unix(1_000_000_000, 0)
	file := func(name string, kind byte, content string) entry {
		return entry{tar.Header{Name: name, Typeflag: kind, Mode: 0o644, Uid: 7, Gid: 8, ModTime: at,
			PAXRecords: map[string]string{}}, content}
	}
	hard, soft := file("volume/b", tar.TypeLink, ""), file("volume/c", tar.TypeSymlink, "")
	hard.Linkname, soft.Linkname = "volume/a", "a"
	return []entry{file("volume/", tar.TypeDir, ""), file("volume/a", tar.TypeReg, strings.Repeat("0123456789", 20_000)),
		hard, soft, file("volume/d", tar.TypeReg, "d")}
}

// empty removes the content of the last entry.
func empty(all []entry) []entry {
	all[len(all)-1].content = ""
	return all
}

// TestSameContent: all that an archive says of a file is compared, and the first difference is reported (BD-8).
func TestSameContent(t *testing.T) {
	if err := sameContent(packed(t, files()), packed(t, files())); err != nil {
		t.Errorf("what is the same: %v", err)
	}
	for what, change := range map[string]func(all []entry) []entry{
		"volume/d is in only one of them":               func(all []entry) []entry { return all[:4] },
		"volume/d and volume/e are in only one of them": func(all []entry) []entry { all[4].Name = "volume/e"; return all },
		"volume/d is of another kind":                   func(all []entry) []entry { all[4].Typeflag = tar.TypeChar; return empty(all) },
		"volume/b leads to volume/a and to volume":      func(all []entry) []entry { all[2].Linkname = "volume"; return all },
		"volume/c leads to a and to d":                  func(all []entry) []entry { all[3].Linkname = "d"; return all },
		"volume/d has 1 bytes and 2":                    func(all []entry) []entry { all[4].content = "dd"; return all },
		"volume/a has other content": func(all []entry) []entry {
			all[1].content = all[1].content[:199_999] + "x"
			return all
		},
		"volume/ has the mode 644 and 4755": func(all []entry) []entry { all[0].Mode = 0o4755; return all },
		"volume/d is of 7:8 and of 7:9":     func(all []entry) []entry { all[4].Gid = 9; return all },
		"volume/a is of 2001":               func(all []entry) []entry { all[1].ModTime = time.Unix(5, 0); return all },
		"volume/d has other attributes": func(all []entry) []entry {
			all[4].PAXRecords["SCHILY.xattr.security.capability"] = "\x01"
			return all
		},
	} {
		for i := range 2 {
			a, b := packed(t, files()), packed(t, change(files()))
			if i == 1 {
				a, b = b, a
			}
			err := sameContent(a, b)
			if differs := (*differs)(nil); !errors.As(err, &differs) {
				t.Errorf("it is not told that %s: %v", what, err)
			} else if !strings.Contains(err.Error(), what) && i == 0 {
				t.Errorf("it is told that %v, and not that %s", err, what)
			}
		}
	}
	whole := packed(t, files())
	cut := make([]byte, 150_000)
	if _, err := whole.Read(cut); err != nil {
		t.Fatal(err)
	}
	if err := sameContent(packed(t, files()), bytes.NewReader(cut)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an archive that breaks off: %v", err)
	}
}

// TestHoldsContent: the source holds all that an interrupted copy has written, but nothing that was added later
// (BD-8).
func TestHoldsContent(t *testing.T) {
	for what, c := range map[string]struct {
		part  func(all []entry) []entry
		holds bool
	}{
		"all of it":     {func(all []entry) []entry { return all }, true},
		"nothing":       {func([]entry) []entry { return nil }, true},
		"the directory": {func(all []entry) []entry { all[0].Mode = 0o700; return all[:1] }, true},
		"a part of the last file": {func(all []entry) []entry {
			all[1].content, all[1].Uid, all[1].ModTime = all[1].content[:70_000], 0, time.Now()
			return all[:2]
		}, true},
		"all of the last file, and not whose it is": {func(all []entry) []entry { all[4].Uid = 0; return all }, true},
		"parts of two":          {func(all []entry) []entry { all[1].content, all[4].content = "0", ""; return all }, false},
		"a file of its own":     {func(all []entry) []entry { all[4].Name = "volume/e"; return all }, false},
		"another word":          {func(all []entry) []entry { all[4].content = "e"; return all }, false},
		"a word more":           {func(all []entry) []entry { all[4].content = "de"; return all }, false},
		"another link":          {func(all []entry) []entry { all[3].Linkname = "d"; return all }, false},
		"a file for a link":     {func(all []entry) []entry { all[3].Typeflag = tar.TypeReg; return all }, false},
		"another one's in full": {func(all []entry) []entry { all[1].Uid, all[4].Uid = 0, 0; return all }, false},
	} {
		err := holdsContent(packed(t, files()), packed(t, c.part(files())))
		differs := (*differs)(nil)
		if err != nil && !errors.As(err, &differs) || (err == nil) != c.holds {
			t.Errorf("%s: %v", what, err)
		}
	}
}
