//go:build engine

package engine

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"berth/test/lab"
)

// cleanUp removes everything that a run made, or left when it was interrupted. If there is nothing, it does nothing.
// It returns the names of the networks that the engine keeps because it miscounts their endpoints.
func cleanUp(e Engine) (left []string, err error) {
	var errs []error
	if _, err := os.Stat("/run/" + demoName); err == nil {
		_, err := demo("down")
		errs = append(errs, err)
	}
	// A network is removed after its containers and before its driver, which may be a container, too.
	errs = append(errs, removeContainers(e, mark+"([a-z]-)?[0-9]"))
	left, err = removeNetworks(e, mark)
	errs = append(errs, err, removeContainers(e, mark), removeVolumes(e, mark), removePlugins(e), removeImages(e),
		removeNamespaces())
	killRecorded()
	sockets, _ := filepath.Glob(filepath.Join(pluginDir, mark+"*"))
	for _, socket := range sockets {
		errs = append(errs, os.RemoveAll(socket))
	}
	errs = append(errs, lab.Unmount(base), os.RemoveAll(base))
	return left, errors.Join(errs...)
}

// removeContainers removes the containers whose names begin with a regular expression, and their volumes without a
// name. While Compose replaces a container, it puts an id before its name. If it is interrupted, that name stays.
func removeContainers(e Engine, begin string) error {
	out, err := e.Docker("ps", "-aq", "--filter", "name=^/([0-9a-f]+_)?"+begin)
	if err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	// A container that has its volumes from the one before it does not take them along.
	volumes, _ := e.Docker(append([]string{"inspect", "--format",
		`{{range .Mounts}}{{if eq .Type "volume"}}{{println .Name}}{{end}}{{end}}`}, strings.Fields(out)...)...)
	// one after the other: engines of the 20.10 line miscount containers that end at once
	for id := range strings.FieldsSeq(out) {
		err = errors.Join(err, removeContainer(e, id))
	}
	for volume := range strings.FieldsSeq(volumes) {
		if len(volume) == 64 { // as long as an id: it has no name
			_, _ = e.api(http.MethodDelete, "/volumes/"+volume, nil) // most are gone with their container
		}
	}
	return err
}

// removeContainer does what `docker rm -f -v` does. It returns when the container is gone, by any call.
func removeContainer(e Engine, container string) error {
	return lab.Eventually(20*time.Second, func() error {
		_, err := e.api(http.MethodDelete, "/containers/"+container+"?force=1&v=1", nil)
		switch {
		case err == nil, strings.Contains(err.Error(), "No such container"):
			return nil
		case strings.Contains(err.Error(), "is already in progress"):
			return err
		}
		return lab.Final(err)
	})
}

// removeVolumes removes the volumes whose names begin with a text.
func removeVolumes(e Engine, begin string) error {
	out, err := e.Docker("volume", "ls", "--quiet", "--filter", "name=^"+begin)
	if err != nil || out == "" {
		return err
	}
	_, err = e.Docker(append([]string{"volume", "rm"}, strings.Fields(out)...)...)
	return err
}

func removeImages(e Engine) error {
	out, err := e.Docker("images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference="+mark+"*")
	if err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	_, err = e.Docker(append([]string{"image", "rm", "-f"}, strings.Fields(out)...)...)
	return err
}
