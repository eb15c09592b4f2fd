package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "f"), filepath.Join(dir, "other")
	for _, file := range []string{other, path} {
		if err := os.WriteFile(file, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, path+".part"); err != nil { // it must not be followed
		t.Fatal(err)
	}
	if err := Write(path, []byte("after")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{path: "after", other: "before"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", file, got, err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "d"), nil); err == nil {
		t.Error("Write replaced a directory")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("after a failure: %v, %v", left, err)
	}
}
