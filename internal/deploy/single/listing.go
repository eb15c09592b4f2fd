package single

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"berth/internal/docker"
)

// answer hides the replicas with the wanted number and above in a list of containers, because Compose gives the next
// container the highest visible number plus one. Of two containers with the same number, one of which replaces the
// other, it shows one, because Compose counts them.
func (f *Filter) answer(resp *http.Response) error {
	words := route(resp.Request.URL.Path)
	if resp.Request.Method != http.MethodGet || resp.StatusCode != http.StatusOK || !is(words, "containers", "json") {
		return nil
	}
	return rewrite(resp, "list of containers", func(all *[]json.RawMessage) error {
		seen := map[int]bool{}
		*all = slices.DeleteFunc(*all, func(raw json.RawMessage) bool { return f.hides(raw, seen) })
		return nil
	})
}

// rewrite changes the engine's answer.
func rewrite[T any](resp *http.Response, what string, change func(*T) error) error {
	var v T
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	if err == nil {
		err = change(&v)
	}
	if err == nil {
		body, err = json.Marshal(v)
	}
	if err != nil {
		return fmt.Errorf("the engine's %s cannot be read: %w", what, err)
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// hides reports whether a container is hidden. seen has the numbers of the service that were already shown.
func (f *Filter) hides(raw json.RawMessage, seen map[int]bool) bool {
	var c struct {
		ID     string `json:"Id"`
		Labels map[string]string
	}
	if json.Unmarshal(raw, &c) != nil {
		return false
	}
	f.mu.Lock()
	ours := c.ID == f.id
	f.mu.Unlock()
	if ours || c.Labels[docker.LabelProject] != f.project || c.Labels[docker.LabelService] != f.replica.Service {
		return false
	}
	number, err := strconv.Atoi(c.Labels[docker.LabelNumber])
	if err != nil {
		return false
	}
	if number >= f.replica.Number || isOneOff(c.Labels) || seen[number] {
		return true
	}
	seen[number] = true
	return false
}

// isOneOff reports whether a container was created by `docker compose run`. docker-compose 1.29 counts these numbers,
// too.
func isOneOff(labels map[string]string) bool {
	one, err := strconv.ParseBool(labels[docker.LabelOneOff])
	return err == nil && one
}
