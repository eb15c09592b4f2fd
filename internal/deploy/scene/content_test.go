package scene

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam/ipamtest"
)

// entry is a file of an archive.
type entry struct {
	tar.Header
	Content string
}

// packed returns an archive as an engine makes it.
func packed(t *testing.T, all []entry) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range all {
		e.Size, e.Format = int64(len(e.Content)), tar.FormatPAX
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.Content); err != nil {
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

// changed returns that archive after changes, separated by "; ": N keeps the first N entries, and N JSON sets fields of
// the entry N. MOST and HALF are the content of the first file but its last byte, and a part of it.
func changed(t *testing.T, changes string) *bytes.Reader {
	t.Helper()
	all := files()
	parts := strings.NewReplacer("MOST", all[1].Content[:199_999], "HALF", all[1].Content[:70_000])
	for change := range strings.SplitSeq(changes, "; ") {
		at, fields, sets := strings.Cut(change, " ")
		n, err := strconv.Atoi(at)
		if sets && err == nil {
			err = json.Unmarshal([]byte(parts.Replace(fields)), &all[n])
		} else {
			all = all[:n]
		}
		ipamtest.Must(t, err)
	}
	return packed(t, all)
}

// TestSameContent: all that an archive says of a file is compared, and the first difference is reported (BD-8).
func TestSameContent(t *testing.T) {
	if err := sameContent(packed(t, files()), packed(t, files())); err != nil {
		t.Errorf("what is the same: %v", err)
	}
	for row := range ipamtest.Rows(2, `
		volume/d is in only one of them | 4
		volume/d and volume/e are each in only one of them | 4 {"Name": "volume/e"}
		volume/d has a different type in the two volumes | 4 {"Typeflag": 51, "Content": ""}
		volume/b leads to volume/a in one volume and to volume in the other | 2 {"Linkname": "volume"}
		volume/c leads to a in one volume and to d in the other | 3 {"Linkname": "d"}
		volume/d has 1 bytes in one volume and 2 in the other | 4 {"Content": "dd"}
		volume/a has different content in the two volumes | 1 {"Content": "MOSTx"}
		volume/ has the mode 644 in one volume and 4755 in the other | 0 {"Mode": 2541}
		the owner of volume/d is 7:8 in one volume and 7:9 in the other | 4 {"Gid": 9}
		the time of volume/a is 2001 | 1 {"ModTime": "1970-01-01T00:00:05Z"}
		volume/d has different attributes in the two volumes | 4 {"PAXRecords": {"SCHILY.xattr.security.capability": "\u0001"}}
	`) {
		what := row[0]
		for i := range 2 {
			a, b := packed(t, files()), changed(t, row[1])
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
	for row := range ipamtest.Rows(3, `
		all of it | 5 | true
		nothing | 0 | true
		the directory | 0 {"Mode": 448}; 1 | true
		a part of the last file | 1 {"Content": "HALF", "Uid": 0, "ModTime": "2020-01-01T00:00:00Z"}; 2 | true
		all of the last file, and not whose it is | 4 {"Uid": 0} | true
		parts of two | 1 {"Content": "0"}; 4 {"Content": ""} | false
		a file of its own | 4 {"Name": "volume/e"} | false
		another word | 4 {"Content": "e"} | false
		a word more | 4 {"Content": "de"} | false
		another link | 3 {"Linkname": "d"} | false
		a file for a link | 3 {"Typeflag": 48} | false
		another one's in full | 1 {"Uid": 0}; 4 {"Uid": 0} | false
	`) {
		err := holdsContent(packed(t, files()), changed(t, row[1]))
		differs := (*differs)(nil)
		if err != nil && !errors.As(err, &differs) || fmt.Sprint(err == nil) != row[2] {
			t.Errorf("%s: %v", row[0], err)
		}
	}
}
