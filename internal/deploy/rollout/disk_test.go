package rollout

import (
	"archive/tar"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// disk is a volume of a small engine.
type disk struct {
	Name, Driver string
	Options      map[string]string
	Labels       map[string]string
	files        map[string]string // their content, by name
}

// mounted is a volume in a container. If it has no source, the engine provides a volume.
type mounted struct{ Type, Source, Target string }

// fits tells whether a container has the labels by which a list is filtered.
func (b *body) fits(filters string) bool {
	var by struct{ Label map[string]bool }
	_ = json.Unmarshal([]byte(filters), &by) // without a filter, all are listed
	for label := range by.Label {
		name, value, _ := strings.Cut(label, "=")
		if has, there := b.Labels[name]; !there || has != value {
			return false
		}
	}
	return true
}

func (b *body) listed() map[string]any {
	state := "exited"
	if b.Running {
		state = "running"
	}
	mounts := []map[string]string{}
	for _, m := range b.Mounts {
		mounts = append(mounts, map[string]string{"Type": "volume", "Name": m.Source, "Destination": m.Target})
	}
	return map[string]any{"Id": b.ID, "Names": []string{"/" + b.Name}, "Labels": b.Labels, "Mounts": mounts,
		"State": state, "ImageID": "sha256:ee"}
}

// volumes answers requests about volumes.
func (e *small) volumes(w http.ResponseWriter, r *http.Request, words []string) {
	if r.Method == http.MethodPost {
		d := &disk{files: map[string]string{}}
		var says struct{ DriverOpts map[string]string }
		text, _ := io.ReadAll(r.Body)
		_, _ = json.Unmarshal(text, d), json.Unmarshal(text, &says) // bad JSON leaves them empty
		d.Options = says.DriverOpts
		if d.Driver == "" {
			d.Driver = "local"
		}
		if e.disks == nil {
			e.disks = map[string]*disk{}
		}
		if e.disks[d.Name] == nil {
			e.disks[d.Name] = d
		}
		reply(w, http.StatusCreated, d)
		return
	}
	if len(words) == 0 {
		reply(w, http.StatusOK, map[string]any{"Volumes": slices.Collect(maps.Values(e.disks))})
		return
	}
	d := e.disks[words[0]]
	used := slices.ContainsFunc(e.all, func(b *body) bool { return b.has(words[0]) })
	switch {
	case d == nil:
		reply(w, http.StatusNotFound, map[string]string{"message": "no such volume: " + words[0]})
	case r.Method == http.MethodGet:
		reply(w, http.StatusOK, d)
	case used:
		reply(w, http.StatusConflict, map[string]string{"message": "the volume is in use: " + words[0]})
	default:
		e.say("remove volume %s", words[0])
		delete(e.disks, words[0])
		w.WriteHeader(http.StatusNoContent)
	}
}

func (b *body) has(volume string) bool {
	return slices.ContainsFunc(b.Mounts, func(m mounted) bool { return m.Source == volume })
}

// archive reads or writes the content of a container's only volume.
func (e *small) archive(w http.ResponseWriter, r *http.Request, b *body) {
	d := e.disks[b.Mounts[0].Source]
	if r.Method == http.MethodPut {
		e.say("write %s", d.Name)
		for t := tar.NewReader(r.Body); ; {
			h, err := t.Next()
			if err != nil {
				return
			}
			if name, is := strings.CutPrefix(h.Name, "volume/"); is && name != "" {
				content, _ := io.ReadAll(t)
				d.files[name] = string(content)
			}
		}
	}
	w.Header().Set("X-Docker-Container-Path-Stat", "e30=")
	t := tar.NewWriter(w)
	defer t.Close()
	_ = t.WriteHeader(&tar.Header{Name: "volume/", Typeflag: tar.TypeDir, Mode: 0o755})
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		_ = t.WriteHeader(&tar.Header{Name: "volume/" + name, Size: int64(len(d.files[name])), Mode: 0o644})
		_, _ = io.WriteString(t, d.files[name]) // fails if the client is gone
	}
}

// halfway writes half of the first file that a killed deploy sent.
func (e *small) halfway(r *http.Request, words []string) {
	if r.Method != http.MethodPut || len(words) != 3 || words[2] != "archive" {
		return
	}
	i := slices.IndexFunc(e.all, func(b *body) bool { return b.ID == words[1] })
	for t := tar.NewReader(r.Body); i >= 0; {
		h, err := t.Next()
		if err != nil {
			return
		}
		if name, is := strings.CutPrefix(h.Name, "volume/"); is && name != "" {
			content, _ := io.ReadAll(t)
			e.disks[e.all[i].Mounts[0].Source].files[name] = string(content[:len(content)/2])
			return
		}
	}
}
