package single

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// The labels by which Compose knows its containers.
const (
	labelProject = "com.docker.compose.project"
	labelService = "com.docker.compose.service"
	labelNumber  = "com.docker.compose.container-number"
	labelOneOff  = "com.docker.compose.oneoff"
)

// answer leaves the replicas from the wanted number on out of a list of containers: Compose gives the next container
// the greatest number that it sees and one.
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
	left := slices.DeleteFunc(all, f.hides)
	if body, err = json.Marshal(left); err != nil {
		return err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// hides tells whether a container of a list is not to be seen.
func (f *Filter) hides(raw json.RawMessage) bool {
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
	if ours || c.Labels[labelProject] != f.project || c.Labels[labelService] != f.replica.Service {
		return false
	}
	number, err := strconv.Atoi(c.Labels[labelNumber])
	return err == nil && number >= f.replica.Number || isOneOff(c.Labels)
}

// isOneOff tells whether a container was made by `docker compose run`. docker-compose 1.29 counts their numbers, too.
func isOneOff(labels map[string]string) bool {
	one, err := strconv.ParseBool(labels[labelOneOff])
	return err == nil && one
}
