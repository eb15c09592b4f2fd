package scene

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
)

// differs is the first difference between two archives.
type differs struct{ what string }

func (d *differs) Error() string { return d.what }

func differ(format string, args ...any) error { return &differs{fmt.Sprintf(format, args...)} }

// sameContent compares two archives of an engine entry by entry. Both have the same order.
func sameContent(a, b io.Reader) error {
	one, other := tar.NewReader(a), tar.NewReader(b)
	for {
		h, err := one.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		with, otherErr := other.Next()
		if otherErr != nil && !errors.Is(otherErr, io.EOF) {
			return otherErr
		}
		switch {
		case err != nil && otherErr != nil:
			return nil
		case err != nil:
			return differ("%s is in only one of them", with.Name)
		case otherErr != nil:
			return differ("%s is in only one of them", h.Name)
		}
		if err := sameEntry(h, with); err != nil {
			return err
		}
		if same, err := sameBytes(one, other); err != nil {
			return err
		} else if same != equal {
			return differ("%s has different content in the two volumes", h.Name)
		}
	}
}

// sameEntry compares the headers of a file in two archives.
func sameEntry(a, b *tar.Header) error {
	switch {
	case a.Name != b.Name:
		return differ("%s and %s are each in only one of them", a.Name, b.Name)
	case a.Typeflag != b.Typeflag:
		return differ("%s has a different type in the two volumes", a.Name)
	case a.Linkname != b.Linkname:
		return differ("%s leads to %s in one volume and to %s in the other", a.Name, a.Linkname, b.Linkname)
	case a.Size != b.Size:
		return differ("%s has %d bytes in one volume and %d in the other", a.Name, a.Size, b.Size)
	case a.Mode != b.Mode:
		return differ("%s has the mode %o in one volume and %o in the other", a.Name, a.Mode, b.Mode)
	case a.Uid != b.Uid || a.Gid != b.Gid:
		return differ("the owner of %s is %d:%d in one volume and %d:%d in the other", a.Name, a.Uid, a.Gid, b.Uid,
			b.Gid)
	case !a.ModTime.Equal(b.ModTime):
		return differ("the time of %s is %s in one volume and %s in the other", a.Name, a.ModTime, b.ModTime)
	case a.Devmajor != b.Devmajor || a.Devminor != b.Devminor:
		return differ("%s is a different device in the two volumes", a.Name)
	case !maps.Equal(attributes(a), attributes(b)):
		return differ("%s has different attributes in the two volumes", a.Name)
	}
	return nil
}

// attributes returns the extended attributes of a file in the archive.
func attributes(h *tar.Header) map[string]string {
	all := map[string]string{}
	for key, value := range h.PAXRecords {
		if strings.HasPrefix(key, "SCHILY.xattr.") {
			all[key] = value
		}
	}
	return all
}

// holdsContent reports whether an archive has everything in another one. The last file written there may be incomplete,
// if a copy of the first was interrupted. It does not compare directories, because their times are set last.
func holdsContent(whole, part io.Reader) error {
	all, some := tar.NewReader(whole), tar.NewReader(part)
	cut := ""
	for {
		has, err := some.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		h, err := find(all, has.Name)
		if err != nil {
			return err
		}
		if h.Typeflag != has.Typeflag {
			return differ("%s has a different type in the two volumes", h.Name)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		same, err := sameBytes(all, some)
		if err != nil {
			return err
		}
		if entry := sameEntry(h, has); same == equal && entry == nil {
			continue
		}
		if same == neither || same == shorter || h.Typeflag != tar.TypeReg || cut != "" {
			return differ("%s has different content in the two volumes", h.Name)
		}
		cut = h.Name
	}
}

// find skips to the entry with a name.
func find(in *tar.Reader, name string) (*tar.Header, error) {
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil, differ("%s is in only one of them", name)
		}
		if err != nil {
			return nil, err
		}
		if h.Name == name {
			return h, nil
		}
	}
}

// likeness is the relation of one file's bytes to those of another.
type likeness int

const (
	equal   likeness = iota
	longer           // the first has the bytes of the second, and more
	shorter          // the second has the bytes of the first, and more
	neither
)

func sameBytes(a, b io.Reader) (likeness, error) {
	const piece = 64 << 10
	one, other := make([]byte, piece), make([]byte, piece)
	for {
		n, err := fill(a, one)
		if err != nil {
			return neither, err
		}
		m, err := fill(b, other)
		if err != nil {
			return neither, err
		}
		least := min(n, m)
		switch {
		case !bytes.Equal(one[:least], other[:least]):
			return neither, nil
		case n > m:
			return longer, nil
		case n < m:
			return shorter, nil
		case n < piece:
			return equal, nil
		}
	}
}

// fill fills into from r. It reads less only at the end.
func fill(r io.Reader, into []byte) (n int, err error) {
	for n < len(into) && err == nil {
		var more int
		more, err = r.Read(into[n:])
		n += more
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
