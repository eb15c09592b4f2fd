//go:build engine

package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

const storedFile = `
version: "3.9"
services:
  db:
    image: ${image}
    command: ${run}
    networks: [front]
    volumes: ["data:/data", /kept]
  web:
    image: ${image}
    command: ${run}
    networks: [front]
    depends_on: [db]
    volumes: ["data:/shared:ro", "cache:/cache"]
    deploy: {replicas: 2}
${mail}
volumes:
  data: ${data}
  cache: ${cache}
  letters: {}
` + frontNetwork

const mailService = `  mail: {image: "${image}", command: ${run}, networks: [front], volumes: ["letters:/letters"]}`

// stored is a project whose services have volumes.
type stored struct {
	*project
	variables map[string]string
}

func (h *Harness) storedProject(command []string) *stored {
	h.Helper()
	s := &stored{variables: map[string]string{"mail": mailService, "data": "{}", "cache": "{}"}}
	s.project = h.deployed(command, storedFile, s.variables)
	return s
}

// set writes the file with one variable changed.
func (s *stored) set(name, value string) {
	s.Helper()
	s.variables[name] = value
	s.write(storedFile, s.variables)
}

// orphans returns the volumes in `berth deploy orphans ls`, by name.
func (s *stored) orphans() map[string]map[string]any {
	s.Helper()
	all := map[string]map[string]any{}
	var rows []map[string]any
	s.json(&rows, "deploy", "orphans", "ls", s.name, "--docker-host", s.Engine.URL())
	for _, row := range rows {
		all[fmt.Sprint(row["volume"])] = row
	}
	return all
}

func (s *stored) removeOrphan(volume string) {
	s.Helper()
	s.berth("deploy", "orphans", "rm", volume, "--docker-host", s.Engine.URL(), "--yes")
}

// volumes returns the project's volumes in the engine.
func (s *stored) volumes() []string {
	s.Helper()
	all := strings.Fields(s.docker("volume", "ls", "--quiet", "--filter", "name=^"+s.name+"_"))
	slices.Sort(all)
	return all
}

// path returns where a volume of the engine's own driver is on this machine.
func (s *stored) path(volume string) string {
	s.Helper()
	return s.docker("volume", "inspect", "--format", "{{.Mountpoint}}", volume)
}

// TestOrphans: volumes outlive the services that are removed. They are listed with their project, service and time.
// Volumes in use again are no orphans. A person removes orphans (BD-5).
func TestOrphans(t *testing.T) {
	eachGeneration(t, newer, 170, func(h *Harness, command []string) {
		s := h.storedProject(command)
		none := func(when string) {
			if all := s.orphans(); len(all) != 0 {
				s.Errorf("%s: orphans are %v", when, all)
			}
		}
		s.deploys()
		none("all are in use")
		letters := s.name + "_letters"
		file := filepath.Join(s.path(letters), "one")
		lab.Must(s, os.WriteFile(file, []byte("dear"), 0o640))
		begun := time.Now().Add(-time.Second)
		s.set("mail", "")
		s.plans(2, "1 to delete", "orphan    volume "+letters, "no service uses it any more")
		s.deploys()
		s.plans(0, "nothing to do")
		row := s.orphans()[letters]
		since, err := time.Parse(time.RFC3339, fmt.Sprint(row["since"]))
		if row["project"] != s.name || row["service"] != "mail" || err != nil || since.Before(begun) ||
			len(s.orphans()) != 1 {
			s.Errorf("orphans are %v", s.orphans())
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "dear" {
			s.Errorf("the orphan holds %q (%v)", text, err)
		}
		guest := s.name + "-guest"
		s.docker("create", "--name", guest, "--volume", letters+":/letters", imageName, "true")
		none("a container has it")
		s.berthRefuses([]string{letters, "is used by the container", guest}, "deploy", "orphans", "rm", letters,
			"--docker-host", s.Engine.URL(), "--yes")
		s.docker("rm", guest)
		s.set("mail", mailService)
		s.plans(2, "1 to create", "use       volume "+letters)
		s.deploys()
		none("it is used again")
		s.set("mail", "")
		s.deploys()
		s.removeOrphan(letters)
		if all := s.volumes(); slices.Contains(all, letters) || len(all) != 2 {
			s.Errorf("it was removed, but the volumes are %v", all)
		}
		none("it was removed")
		s.plans(0)
	})
}

// TestChangedVolume: if driver_opts change, the project's own Compose recreates the volume, with all its content. The
// old volume stays as an orphan. A volume with a new name gets the content of the old one. An unnamed volume follows
// its container. All this also holds after a killed deploy. Afterwards Compose has nothing to do (BD-8).
func TestChangedVolume(t *testing.T) {
	eachGeneration(t, newer, 172, func(h *Harness, command []string) {
		changed(h.storedProject(command))
	})
}

// boundTo returns a volume that is a directory of the machine.
func boundTo(dir string) string {
	return fmt.Sprintf(`{driver_opts: {type: none, o: bind, device: %q}}`, dir)
}

func changed(s *stored) {
	s.deploys()
	data, dir := s.name+"_data", s.TempDir()
	fillVolume(s, s.path(data))
	s.docker("exec", s.containerOf("db", 1), "sh", "-c", "echo mine >/kept/file")
	want := contentOf(s, s.path(data))
	if len(want) < 15 {
		s.Fatalf("the volume holds %v", want)
	}
	s.set("data", boundTo(dir))
	s.plans(2, "copy      volume "+data+" by way of "+data+"-orphan-1", "driver_opts are none", "3 to recreate")
	s.deploys()
	s.plans(0, "nothing to do")
	for what, at := range map[string]string{"the new volume": dir, "the orphan": s.path(data + "-orphan-1")} {
		sameFiles(s, what, want, contentOf(s, at))
	}
	if row := s.orphans()[data+"-orphan-1"]; row["service"] != "db,web" || row["of"] != data || row["stage"] != nil {
		s.Errorf("orphans are %v", s.orphans())
	}
	s.upLeaves(4)
	sameFiles(s, "after `up` the new volume", want, contentOf(s, dir))
	s.set("data", fmt.Sprintf("{name: %s_renamed}", s.name))
	s.plans(2, "copy      volume "+s.name+"_renamed from "+data, "its name was "+data+" before")
	s.killed(6, nil) // the containers are gone, or nearly so
	s.unlock()
	s.deploys()
	s.plans(0, "nothing to do")
	sameFiles(s, "the renamed volume", want, contentOf(s, s.path(s.name+"_renamed")))
	sameFiles(s, "the volume before", want, contentOf(s, dir))
	if all := s.orphans(); len(all) != 2 || all[data] == nil {
		s.Errorf("orphans are %v", all)
	}
	s.upLeaves(4)
	guest := s.name + "-guest"
	s.docker("create", "--name", guest, "--volume", s.name+"_renamed:/data", imageName, "true")
	s.set("data", fmt.Sprintf("{name: %s_renamed, labels: {shelf: top}}", s.name))
	s.plans(1, "the container "+guest+" uses it")
	s.docker("rm", guest)
	s.deploys()
	if label := s.docker("volume", "inspect", "--format", "{{.Labels.shelf}}", s.name+"_renamed"); label != "top" {
		s.Errorf("its label is %q", label)
	}
	sameFiles(s, "the volume with a label", want, contentOf(s, s.path(s.name+"_renamed")))
	if kept := s.docker("exec", s.containerOf("db", 1), "busybox", "cat", "/kept/file"); kept != "mine" {
		s.Errorf("the volume without a name has %q", kept)
	}
	for volume := range s.orphans() {
		s.removeOrphan(volume)
	}
	s.run("down", "--timeout", "1", "--volumes")
	if all := s.volumes(); len(all) != 0 {
		s.Errorf("left are %v", all)
	}
}

// fillVolume fills a volume with files that are hard to copy.
func fillVolume(s *stored, dir string) {
	s.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	old := time.Date(1999, 12, 31, 23, 59, 58, 0, time.UTC)
	capability := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // cap_net_bind_service=ep
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(i * i >> 7)
	}
	err := errors.Join(
		os.WriteFile(at("plain"), []byte("plain\n"), 0o644),
		os.WriteFile(at("empty"), nil, 0o600),
		os.WriteFile(at("large"), large, 0o640),
		os.WriteFile(at(strings.Repeat("a long name ", 15)+"ü\n"), []byte("x"), 0o644),
		os.WriteFile(at(".wh.plain"), []byte("no whiteout"), 0o644),
		os.WriteFile(at("program"), []byte("#!/bin/sh\n"), 0o755),
		syscall.Setxattr(at("program"), "security.capability", capability, 0),
		os.Mkdir(at("dir"), 0o700), os.Mkdir(at("dir/in it"), 0o755), os.Mkdir(at("nobody's"), 0o755),
		os.WriteFile(at("dir/in it/deep"), []byte("deep"), 0o400),
		os.Link(at("dir/in it/deep"), at("hard")),
		os.Symlink("dir/in it/deep", at("soft")), os.Symlink("/nowhere/at all", at("dangling")),
		syscall.Mkfifo(at("pipe"), 0o620), syscall.Mknod(at("null"), syscall.S_IFCHR|0o666, 1<<8|3),
		os.WriteFile(at("sparse"), nil, 0o644), os.Truncate(at("sparse"), 8<<20),
		os.Lchown(at("plain"), 1234, 5678), os.Lchown(at("dir"), 70000, 3), os.Lchown(at("soft"), 11, 12),
		os.Chmod(at("plain"), fs.ModeSetuid|fs.ModeSetgid|0o755), os.Chmod(at("nobody's"), fs.ModeSticky|0o777),
		os.Chtimes(at("hard"), old, old), os.Chtimes(at("dir"), old, old),
		os.Lchown(dir, 999, 998), os.Chmod(dir, 0o2750), os.Chtimes(dir, old, old),
	)
	lab.Must(s, err)
}

// contentOf returns everything about the files below a directory, by name, including which names are the same file.
func contentOf(s *stored, dir string) map[string]string {
	s.Helper()
	all, first := map[string]string{}, map[uint64]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		st := info.Sys().(*syscall.Stat_t)
		text := fmt.Sprintf("%v %d:%d %s dev %d", info.Mode(), st.Uid, st.Gid, info.ModTime().Truncate(time.Second).UTC(),
			st.Rdev)
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			has := make([]byte, 64)
			n, _ := syscall.Getxattr(path, "security.capability", has)
			text += fmt.Sprintf(" %d bytes %x capability %x", len(content), sha256.Sum256(content), has[:max(n, 0)])
			if st.Nlink > 1 {
				if first[st.Ino] == "" {
					first[st.Ino] = name
				}
				text += " is " + first[st.Ino]
			}
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			text += " to " + to
		}
		all[name] = text
		return nil
	})
	lab.Must(s, err)
	return all
}

func sameFiles(s *stored, what string, want, got map[string]string) {
	s.Helper()
	if maps.Equal(want, got) {
		return
	}
	for name := range maps.Keys(want) {
		if want[name] != got[name] {
			s.Errorf("%s: %q is %q, and was %q", what, name, got[name], want[name])
		}
	}
	for name := range maps.Keys(got) {
		if want[name] == "" {
			s.Errorf("%s: %q was not there", what, name)
		}
	}
}
