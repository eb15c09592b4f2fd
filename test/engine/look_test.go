//go:build engine

package engine

import (
	"berth/test/ground"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A replica is found, in what is and in what was, by its name as Compose writes it now, as it wrote it once, and as the
// owner that it is; and the address that is told to be next is the one that docker run gets. The engine of this
// scenario sends no names, so that they are the witness's.
func TestFoundByAnyForm(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 193)
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.span(10, 20))
	n := h.on(front, "--subnet", h.v4("0/24"))

	next := h.berth("network", "free", front, "--next")
	err := ground.Eventually(10*time.Second, func() error { // the name is known by an event of the engine's
		byDocker, err := berth(h.Berth, "network", "free", n, "--next")
		if err == nil && byDocker != next {
			err = fmt.Errorf("the next address of %s is %s, and by Docker's name %s it is %s", front, next, n, byDocker)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	project := h.name()
	web := project + "-web-1"
	h.docker(containerCommand(web, n)...)
	if a := h.address(web, n); a != next {
		t.Errorf("docker run gets %s, and %s was told to be next", a, next)
	}
	h.seen(next, web)
	if free := h.berth("network", "free", front, "-q"); free != h.v4("11")+"-"+h.v4("20") {
		t.Errorf("free are %q", free)
	}

	forms := []string{web, project + "_web_1", project + "/web/1"}
	found := func(when string, want ...string) {
		t.Helper()
		for _, form := range forms {
			for _, question := range [][]string{
				{"who", form, "-q"}, {"find", form, "--kind", "lease", "-q"},
				{"inspect", form, "--type", "lease", "--format", "{{.Address}}"},
			} {
				if got := h.berth(question...); got != strings.Join(want, "\n") {
					t.Errorf("%s, berth %s: %q and not %q", when, strings.Join(question, " "), got, want)
				}
			}
		}
	}
	found("it runs", next)
	h.docker("rm", "-f", web)
	found("it is gone", next) // as a memory
	h.finds()
}
