package deploy_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/test/still"
)

const startFirstFile = `services:
  web:
    image: x
    scale: 3
    networks: [front]
    x-berth: {update: {order: start-first}}` + networks

// startsFirst is a project of three replicas whose files have changed, with a pool of that many addresses.
func startsFirst(t *testing.T, addresses int) *harness {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", fmt.Sprintf("10.8.0.10+%d", addresses))
	h.reserved(map[string]string{"shop/web/1": "10.8.0.10", "shop/web/2": "10.8.0.11", "shop/web/3": "10.8.0.12"})
	h.engine.Images["x"] = "sha256:x"
	h.engine.Containers = []still.Container{replica("web", 1, "10.8.0.10"), replica("web", 2, "10.8.0.11"),
		replica("web", 3, "10.8.0.12")}
	h.must(h.compose.Hashes(map[string]string{"web": "changed"}))
	h.file(startFirstFile)
	return h
}

// TestPlanStartFirst: with start-first each replaced replica gets a second address, the same one when the plan is
// made again. An unchanged replica needs none (BD-4, BO-13).
func TestPlanStartFirst(t *testing.T) {
	h := startsFirst(t, 6)
	var first string
	for range 2 {
		code, out, said := h.berth("plan")
		if code != 2 || said != "" {
			t.Fatalf("the exit code is %d: %s", code, said)
		}
		for _, want := range []string{"10.8.0.10 -> 10.8.0.13", "10.8.0.11 -> 10.8.0.14", "10.8.0.12 -> 10.8.0.15",
			"3 to recreate"} {
			if !strings.Contains(out, want) {
				t.Errorf("it says nothing of %q:\n%s", want, out)
			}
		}
		if first != "" && first != out {
			t.Errorf("it says\n%s\nand again\n%s", first, out)
		}
		first = out
	}
	h.must(h.compose.Hashes(map[string]string{"web": "h-web"}))
	if code, out, said := h.berth("plan"); code != 0 || strings.Contains(out, "->") {
		t.Errorf("what is as it should be: %d\n%s%s", code, out, said)
	}
	if writes := h.engine.Writes(); len(writes) > 0 {
		t.Errorf("the engine is asked for %v", writes)
	}
}

// TestPlanStartFirstFull: with too few addresses for that, the plan is refused before anything is done (BD-4).
func TestPlanStartFirstFull(t *testing.T) {
	h := startsFirst(t, 5)
	code, out, said := h.berth("plan")
	if code != 1 || out != "" || !strings.Contains(said, "no second address for shop/web/3") {
		t.Errorf("the exit code is %d: %s%s", code, out, said)
	}
	if code, _, said := h.berth("apply", "--yes"); code != 1 || len(h.engine.Writes()) > 0 {
		t.Errorf("it is applied with %d: %s%v", code, said, h.engine.Writes())
	}
}
