package single

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
)

// takeOver gives a container the unnamed volumes of its predecessor, for paths at which the files or the image request
// a volume. Compose does that itself when it replaces a container. Here it creates one without a predecessor.
func (f *Filter) takeOver(ctx context.Context, c object) error {
	if len(f.replica.Volumes) == 0 {
		return nil
	}
	host, err := c.in("HostConfig")
	if err != nil {
		return err
	}
	var binds []string
	var mounts []object
	for field, into := range map[string]any{"Binds": &binds, "Mounts": &mounts} {
		if raw := host[field]; raw != nil {
			if err := json.Unmarshal(raw, into); err != nil {
				return err
			}
		}
	}
	asked, err := f.asksFor(ctx, c)
	if err != nil {
		return err
	}
	for _, v := range f.replica.Volumes {
		bound := boundAt(binds, v.Target)
		m := mountAt(mounts, v.Target)
		switch {
		case m != nil && len(text(m["Source"])) == 0 && text(m["Type"]) == "volume":
			if err := m.put("Source", v.Name); err != nil {
				return err
			}
		case m == nil && !bound && asked[v.Target]:
			binds = append(binds, v.Name+":"+v.Target)
		}
	}
	for field, value := range map[string]any{"Binds": binds, "Mounts": mounts} {
		if err := host.put(field, value); err != nil {
			return err
		}
	}
	return c.put("HostConfig", host)
}

// asksFor returns the paths at which a container has any volume, from its description or its image.
func (f *Filter) asksFor(ctx context.Context, c object) (map[string]bool, error) {
	asked := map[string]bool{}
	described, err := c.in("Volumes")
	if err != nil {
		return nil, err
	}
	for path := range described {
		asked[path] = true
	}
	var image struct {
		Config struct{ Volumes map[string]struct{} }
	}
	if err := f.get(ctx, "/images/"+url.PathEscape(text(c["Image"]))+"/json", &image); err != nil {
		return nil, err
	}
	for path := range image.Config.Volumes {
		asked[path] = true
	}
	return asked, nil
}

// boundAt reports whether one of the binds, such as NAME:PATH:rw, is at a path. A bind with only a path requests a
// volume.
func boundAt(binds []string, path string) bool {
	for _, bind := range binds {
		if words := strings.Split(bind, ":"); len(words) > 1 && words[1] == path {
			return true
		}
	}
	return false
}

func mountAt(mounts []object, path string) object {
	for _, m := range mounts {
		if text(m["Target"]) == path {
			return m
		}
	}
	return nil
}

// text decodes a JSON string. It is empty for anything else.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // a missing value is empty
	return s
}
