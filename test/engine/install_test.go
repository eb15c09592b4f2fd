//go:build engine

package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// systemd accepts the files that `make install` puts into a package's directory. `make uninstall` removes all of them.
func TestInstall(t *testing.T) {
	t.Parallel()
	root, err := lab.Root()
	lab.Must(t, err)
	dest := filepath.Join(base, "install")
	script := func(name string, args ...string) {
		t.Helper()
		args = append(args, dest, "/opt", "/lib/systemd/system")
		if _, err := lab.Run(time.Minute, nil, filepath.Join(root, "scripts", name), args...); err != nil {
			t.Fatal(err)
		}
	}
	script("install", binary)
	want := []string{"lib/systemd/system/berth-admin.socket", "lib/systemd/system/berth-edge.service",
		"lib/systemd/system/berth-mac.socket", "lib/systemd/system/berth-witness.service",
		"lib/systemd/system/berth.service", "lib/systemd/system/berth.socket", "opt/bin/berth"}
	starts := map[string]string{"berth.service": "serve --docker-host none", "berth-edge.service": "edge",
		"berth-witness.service": "witness --docker-host unix:///var/run/docker.sock --put-back all"}
	if got := files(t, dest); !slices.Equal(got, want) {
		t.Errorf("installed: %v", got)
	}
	units := filepath.Join(base, "units")
	lab.Must(t, os.MkdirAll(units, 0o700))
	verify := []string{"verify", "--man=no"}
	for _, file := range want[:len(want)-1] {
		text, err := os.ReadFile(filepath.Join(dest, file))
		lab.Must(t, err)
		verb := starts[filepath.Base(file)]
		if strings.HasSuffix(file, ".service") && !strings.Contains(string(text),
			"ExecStart=/opt/bin/berth "+verb+"\n") {
			t.Errorf("%s does not start what was installed:\n%s", file, text)
		}
		// systemd checks that the program exists: it does, below the package's directory.
		unit := filepath.Join(units, filepath.Base(file))
		lab.Must(t, os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/opt/bin/", dest+"/opt/bin/")),
			0o600))
		verify = append(verify, unit)
	}
	out, err := lab.Run(time.Minute, nil, "sh",
		append([]string{"-c", `systemd-analyze "$@" 2>&1`, "sh"}, verify...)...)
	if err != nil || out != "" {
		t.Errorf("systemd-analyze verify: %s (%v)", out, err)
	}
	for _, unit := range verify[2:] {
		most := "20" // in tenths; the edge needs more than the others for its work
		switch filepath.Base(unit) {
		case "berth-edge.service":
			most = "25"
		case "berth.service", "berth-witness.service":
		default:
			continue
		}
		out, err := lab.Run(time.Minute, nil, "systemd-analyze", "security", "--offline=true", "--no-pager",
			"--threshold="+most, unit)
		if err != nil {
			t.Errorf("%s is exposed to more than %s tenths (%v):\n%s", unit, most, err, out)
		}
	}
	script("uninstall")
	if got := files(t, dest); len(got) != 0 {
		t.Errorf("uninstall left %v", got)
	}
}

// files returns the names of all files below dir, sorted.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, name)
		return err
	})
	lab.Must(t, err)
	return names
}
