package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// aPlan uses everything that a plan can contain.
const aPlan = `{"networks": [
	{"name": "front", "space": "lab", "tags": {"site": "a"}, "mac_prefix": "aa:00:00", "links": [{"host": "h1", "mode": "bridged", "link": "br0"}],
		"sticky": false, "quarantine": "10m", "line": 3,
		"subnets": [{"cidr": "192.0.2.0/24", "name": "lan", "gateway": "192.0.2.1", "dhcp": true, "line": 4,
			"pools": [{"range": "192.0.2.10+5", "name": "p", "line": 5}], "exclusions": [{"range": "192.0.2.60", "note": "printer", "line": 6}]}],
		"pools": [{"range": "192.0.2.128/26"}], "exclusions": [{"range": "192.0.2.70"}],
		"reservations": [{"owner": "web", "address": "192.0.2.11", "unplaced": true, "automatic": true}, {"owner": "x", "address": "192.0.2.12", "force": true, "interface": 1, "slot": 0}],
		"addresses": [{"owner": "rtr", "address": "192.0.2.12", "interface": 0, "slot": 0}]},
	{"name": "vips", "type": "vip", "owner_rules": [{"pattern": "web-*", "owner": "shop/web/*", "pool": "w"}, {"pattern": "db", "pool": "d"}],
		"static": [{"range": "203.0.113.8/29", "line": 8}], "subnets": [{"cidr": "203.0.113.0/24", "static": [{"range": "203.0.113.32/29"}]}],
		"reservations": [{"owner": "a", "address": "203.0.113.9", "replaced": true}, {"owner": "b", "address": "203.0.113.10", "until": "2126-01-02T03:04:05Z"}]},
	{"name": "others", "type": "dynamic", "reservations": [{"owner": "c"}]},
	{"name": "wire"}]}`

// TestImportAsDescribed compares export, import, resume and undo, and their refusals, with the description.
func TestImportAsDescribed(t *testing.T) {
	h := start(t, nil)
	h.plays(t, `
		POST /v1/import?dry_run=true $APLAN
			-> 200 "dry_run":true,"added":{"networks":4,"subnets":2,"pools":2,"exclusions":2,"reservations":5,"addresses":1}
		GET /v1/export -> 200 "networks":[]
		POST /v1/import $APLAN -> 200 "done":
		POST /v1/import $APLAN -> 200 "report":{"added":{"networks":0,
		GET /v1/export -> 200 "name":"wire"
		GET /v1/export?network=front -> 200 "quarantine":"10m"
		GET /v1/export?network=vips
			-> 200 "static":[{"range":"203.0.113.8/29"},{"range":"203.0.113.32/29"}]
		GET /v1/export?network=vips -> 200 "replaced":true
		GET /v1/export?network=vips -> 200 "until":"2126-01-02T03:04:05Z"
		GET /v1/export?network=others -> 200 "reservations":[{"owner":"c"
		GET /v1/networks/others/reservations -> 200 "owner":"c"
		GET /v1/networks/front -> 200 "reserved":1
		GET /v1/status -> 200 "networks":4,"subnets":2,"leases":2,"reserved":3,"reservations":4,"docker":0
		POST /v1/import {"networks": [{"name": "a b", "line": 7}, {"name": "c"}, {"name": "c",
			"line": 9}]} -> 400 "problems":[{"line":7,
		POST /v1/import {"networks": [$MANY{"name": "b"}]} -> 400 "more":50
		POST /v1/import {"networks": [{"name": "a", "colour": "red"}]}
			-> 400 there is no field \"networks.0.colour\" here
		POST /v1/import {"networks": [{"name": "a", "pools": [{"range": "192.0.2.9-192.0.2.1"}]}]}
			-> 400 reversed
		POST /v1/import?dry_run=perhaps $APLAN -> 400 dry_run
		POST /v1/import?force=true $APLAN -> 400 has no parameter
		GET /v1/export?x=y -> 400 has no parameter
		GET /v1/status?x=y -> 400 has no parameter
	`, "$APLAN", aPlan, "$MANY", strings.Repeat(`{"name": "all"},`, 150))
}

// manyAddresses needs several transactions.
func manyAddresses(name string, third byte) ipam.Plan {
	n := ipam.PlannedNetwork{Name: name,
		Subnets: []ipam.PlannedSubnet{{CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, third, 0, 0}), 16)}}}
	for i := range 3000 {
		n.Reservations = append(n.Reservations,
			ipam.PlannedReservation{Owner: fmt.Sprint("web-", i),
				Address: netip.AddrFrom4([4]byte{10, third, byte(i>>8 + 1), byte(i)})})
	}
	return ipam.Plan{Networks: []ipam.PlannedNetwork{n}}
}

// Each line of an import is as described. The last one is the report, the others are progress.
func TestImportLinesAsDescribed(t *testing.T) {
	h := start(t, nil)
	got := h.plays(t, `POST /v1/import $PLAN -> 200`, "$PLAN", inJSON(t, manyAddresses("large", 1)))
	lines := strings.Split(strings.TrimSpace(got.body), "\n")
	for _, one := range lines {
		h.asDescribed(t, "POST /v1/import {}", one)
	}
	if len(lines) < 2 || !strings.Contains(lines[0], `"total":3003`) ||
		!strings.Contains(lines[len(lines)-1], `"reservations":3000`) {
		t.Errorf("the lines are %s", lines)
	}
}

// TestClientImport: the client exports and imports over the socket and over TLS, and reports progress.
func TestClientImport(t *testing.T) {
	w := startTLS(t, nil)
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(w.token(t, "ops", api.RoleAdmin, 0)+"\n"), 0o600))
	remote, err := client.NewRemote(client.Remote{URL: "https://" + w.addr, CA: w.files.ClientCA, TokenFile: file})
	must(t, err)
	defer remote.Close()
	for i, c := range []*client.Client{w.client, remote} {
		p := manyAddresses(fmt.Sprint("large", i), byte(1+i))
		p.Networks[0].Space = "local"
		dry, err := c.Import(t.Context(), p, true, nil)
		must(t, err)
		if !dry.DryRun || dry.Added.Reservations != 3000 || len(dry.Networks) != 1 {
			t.Errorf("%+v", dry)
		}
		heard := 0
		report, err := c.Import(t.Context(), p, false, func(done, total int) {
			if done <= heard || done > total || total != 3003 {
				t.Errorf("%d of %d after %d", done, total, heard)
			}
			heard = done
		})
		must(t, err)
		if report.Added.Reservations != 3000 || heard == 0 {
			t.Errorf("%+v after %d", report, heard)
		}
		var back []ipam.PlannedNetwork
		for n, err := range c.Export(t.Context(), p.Networks[0].Name) {
			must(t, err)
			back = append(back, n)
		}
		if got, want := inJSON(t, back), inJSON(t, p.Networks); got != want {
			t.Errorf("exported is %.2000s", got)
		}
	}
	for _, err := range w.client.Export(t.Context(), "nowhere") {
		if code(err) != api.CodeNotFound {
			t.Errorf("the export of a network that is not there: %v", err)
		}
	}
	for range w.client.Export(t.Context(), "") {
		break // the receiver stops early
	}
	_, err = w.client.Import(t.Context(), ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "x y", Line: 4}}}, false,
		nil)
	var problem *api.Problem
	if !errors.As(err, &problem) || len(problem.Problems) != 1 || problem.Problems[0].Line != 4 ||
		!strings.HasPrefix(problem.Detail, "line 4: ") {
		t.Errorf("%+v", err)
	}
	if _, err := w.client.Import(t.Context(), ipam.Plan{}, false, nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// A plan that is too large is refused before it is sent. Other bodies have a smaller limit.
func TestPlanTooLarge(t *testing.T) {
	h := start(t, nil)
	large := strings.Repeat(" ", api.MaxBody+1)
	for _, s := range []step{
		{method: "POST", target: "/v1/edits", body: large, status: 413, has: api.CodeTooLarge},
		{method: "POST", target: "/v1/import", body: large, status: 415,
			header: http.Header{"Content-Type": {"text/plain"}}},
		{method: "POST", target: "/v1/import", body: strings.Repeat(" ", int(api.PostImport.MaxBody)+1), status: 413,
			has: api.CodeTooLarge},
	} {
		h.play(t, s)
	}
}

// A small plan that would need much memory is refused before it is read.
func TestPlanOfTooMany(t *testing.T) {
	h := start(t, nil)
	var tags strings.Builder
	for i := range maxStretch / 9 {
		fmt.Fprintf(&tags, `"%03x":"",`, i)
	}
	links := `{"links":[` + strings.Repeat(`{},`, 99) + `{}]},`
	for _, body := range []string{
		`{"networks":[` + strings.Repeat("{},", maxNetworks) + `{}]}`,
		`{"networks":[{"subnets":[` + strings.Repeat("{},", maxNetworks) + `{}]}]}`,
		`{"networks":[{"reservations":[` + strings.Repeat("{},", maxThings) + `{}]}]}`,
		`{"networks":[` + strings.Repeat(links, maxThings/100) + `{}]}`,
		`{"networks":[{"name":"a","tags":{` + tags.String() + `"a":""}}]}`,
	} {
		h.play(t, step{method: "POST", target: "/v1/import", body: body, status: 413, has: api.CodeTooLarge})
	}
}

// One import runs at a time. The refusal comes before the plan is sent.
func TestImportBusy(t *testing.T) {
	h := start(t, nil)
	h.server.imports <- struct{}{}
	if _, err := h.client.Import(t.Context(), manyAddresses("large", 1), false, nil); code(err) != api.CodeBusy {
		t.Errorf("%v", err)
	}
	<-h.server.imports
	h.plays(t, `POST /v1/import {"networks": []} -> 200 "report"`)
}

// runs replaces the server's import by run. The body is read first.
func runs(run func(context.Context, func(done, total int)) (ipam.ImportReport, error)) func(*Server) {
	return func(s *Server) {
		s.handlers = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if err := s.importing(w, r, run); err != nil {
				s.refuse(w, r, problemOf(err))
			}
		})
	}
}

// A problem after the first line is a line itself.
func TestImportStopped(t *testing.T) {
	h := start(t, runs(func(_ context.Context, progress func(int, int)) (ipam.ImportReport, error) {
		progress(1, 2)
		return ipam.ImportReport{}, fmt.Errorf("%w: somebody was faster", ipam.ErrInUse)
	}))
	heard := 0
	_, err := h.client.Import(t.Context(), ipam.Plan{}, false, func(int, int) { heard++ })
	var problem *api.Problem
	if !errors.As(err, &problem) || problem.Code != api.CodeInUse ||
		!strings.Contains(problem.Detail, "somebody was faster") || problem.Title == "" || heard != 1 {
		t.Errorf("%+v after %d lines", err, heard)
	}
}

// An import ends when its client leaves, and when the daemon ends.
func TestImportEnds(t *testing.T) {
	ended := make(chan error, 1)
	waits := runs(func(ctx context.Context, progress func(int, int)) (ipam.ImportReport, error) {
		progress(1, 2)
		<-ctx.Done()
		ended <- ctx.Err()
		return ipam.ImportReport{}, ctx.Err()
	})
	h := start(t, waits)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := h.client.Import(ctx, ipam.Plan{}, false, func(int, int) { cancel() })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "import again to add the rest") ||
		!errors.Is(<-ended, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := h.client.Import(ctx, ipam.Plan{}, false, nil); !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "interrupted") {
		t.Errorf("interrupted before: %v", err)
	}
	h = start(t, waits)
	stopped := make(chan error, 1)
	_, err = h.client.Import(t.Context(), ipam.Plan{}, false, func(int, int) { go func() { stopped <- h.stop() }() })
	if code(err) != api.CodeUnavailable || !errors.Is(<-ended, context.Canceled) {
		t.Errorf("the daemon ended: %v", err)
	}
	must(t, <-stopped)
	h = start(t, runs(func(_ context.Context, progress func(int, int)) (ipam.ImportReport, error) {
		progress(1, 2)
		panic(http.ErrAbortHandler)
	}))
	if _, err := h.client.Import(t.Context(), ipam.Plan{}, false, nil); err == nil ||
		!strings.Contains(err.Error(),
			"stopped the import: the daemon closed the connection; when it runs again, import again") {
		t.Errorf("the daemon was killed: %v", err)
	}
}

// The client can tell a broken-off export from a whole one.
func TestExportBrokenOff(t *testing.T) {
	h := start(t, func(s *Server) {
		whole := s.handlers
		s.handlers = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/export" {
				whole.ServeHTTP(w, r)
				return
			}
			fmt.Fprint(w, `{"networks":[{"name":"a"},`+"\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
	})
	var last error
	n := 0
	for _, last = range h.client.Export(t.Context(), "") {
		n++
	}
	if n != 2 || last == nil || !strings.Contains(last.Error(), "broke off: the daemon closed the connection") {
		t.Errorf("%d, %v", n, last)
	}
}
