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

// answer leaves the replicas from the wanted number on out of a list of containers: Compose gives the next container
// the greatest number that it sees and one. Of two with one number, of which one is exchanged for the other, it sees
// one: it counts them.
func (f *Filter) answer(resp *http.Response) error {
	words := route(resp.Request.URL.Path)
	if resp.Request.Method != http.MethodGet || resp.StatusCode != http.StatusOK || !is(words, "containers", "json") {
		return nil
	}
	var all []json.RawMessage
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	if err != nil {
		return fmt.Errorf("the engine's list of containers cannot be read: %w", err)
	}
	seen := map[int]bool{}
	left := slices.DeleteFunc(all, func(raw json.RawMessage) bool { return f.hides(raw, seen) })
	if body, err = json.Marshal(left); err != nil {
		return err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// hides tells whether a container of a list is not to be seen, where some numbers of the service were seen before.
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

// isOneOff tells whether a container was made by `docker compose run`. docker-compose 1.29 counts their numbers, too.
func isOneOff(labels map[string]string) bool {
	one, err := strconv.ParseBool(labels[docker.LabelOneOff])
	return err == nil && one
}
