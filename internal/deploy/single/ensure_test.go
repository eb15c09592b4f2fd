package single

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestVolumesOnly: volumesOnly creates volumes and no container. It does not report that refusal.
func TestVolumesOnly(t *testing.T) {
	e, f := begin(t, nil)
	v := &volumesOnly{Filter: f}
	asked := func(target, body string) int {
		w := httptest.NewRecorder()
		v.ServeHTTP(w, httptest.NewRequest("POST", target, strings.NewReader(body)))
		return w.Code
	}
	if status := asked("/v1.41/volumes/create", `{"Name": "shop_data"}`); status != 200 || v.came {
		t.Errorf("a volume: %d, and Compose came to a container: %v", status, v.came)
	}
	if status := asked("/v1.41/containers/create?name=shop-web-2", described); status != 403 || !v.came {
		t.Errorf("a container: %d", status)
	}
	if _, _, refused := f.result(); len(refused) > 0 || len(e.has()) != 1 {
		t.Errorf("refused is %v, and the engine is asked for %v", refused, e.has())
	}
}

// TestAsDeclared: Compose sees a volume that is recreated as the files describe it, and any other as the engine
// has it.
func TestAsDeclared(t *testing.T) {
	_, f := begin(t, nil)
	f.declared = map[string]Declared{"shop_data": {Driver: "local", Options: map[string]string{"o": "bind"}}}
	for name, want := range map[string]string{"shop_data": "local bind /v", "shop_log": "nfs  /v"} {
		_, answer := ask(f, "GET", "/v1.41/volumes/"+name, "")
		var v struct {
			Driver, Mountpoint string
			Options            map[string]string
		}
		if err := json.Unmarshal([]byte(answer), &v); err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		if got := v.Driver + " " + v.Options["o"] + " " + v.Mountpoint; got != want {
			t.Errorf("%s is seen as %s, want %s", name, got, want)
		}
	}
}
