//go:build engine

package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"berth/test/ground"
)

// cleanUp removes all that a run made, or left when it was interrupted. It is harmless where there is nothing. It
// returns the names of the networks that the engine keeps because it miscounts their endpoints.
func cleanUp(e Engine) (left []string, err error) {
	var errs []error
	if _, err := os.Stat("/run/" + demoName); err == nil {
		_, err := demo("down")
		errs = append(errs, err)
	}
	// A network goes after its containers and before its driver, which may be a container, too.
	errs = append(errs, removeContainers(e, mark+"([a-z]-)?[0-9]"))
	left, err = removeNetworks(e, mark)
	errs = append(errs, err, removeContainers(e, mark), removePlugins(e), removeImages(e), removeNamespaces())
	killRecorded()
	sockets, _ := filepath.Glob(filepath.Join(pluginDir, mark+"*"))
	for _, socket := range sockets {
		errs = append(errs, os.RemoveAll(socket))
	}
	errs = append(errs, ground.UnmountUnder(base), os.RemoveAll(base))
	return left, errors.Join(errs...)
}

// removeContainers removes the containers whose names begin with a regular expression.
func removeContainers(e Engine, begin string) error {
	out, err := e.Docker("ps", "-aq", "--filter", "name=^/"+begin)
	if err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	_, err = e.Docker(append([]string{"rm", "-f"}, strings.Fields(out)...)...)
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
