package deploy_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// byDeploy reserves for owners as a deploy on a host does.
func (h *harness) byDeploy(host string, owners ...string) {
	h.Helper()
	c := client.New(h.socket)
	defer c.Close()
	id := ipam.NewID()
	edits := []ipam.Edit{&ipam.LockDeploy{Project: "shop", ID: id, Host: host, PID: 1, TTL: ipam.LeastDeployTTL}}
	for _, owner := range owners {
		edits = append(edits, &ipam.AddReservation{Network: "front", Owner: owner})
	}
	edits = append(edits, &ipam.UnlockDeploy{Project: "shop", ID: id, Outcome: ipam.DeployDone})
	for _, e := range edits {
		_, err := c.Edit(h.Context(), client.EditOptions{Deploy: id}, e)
		h.must(err)
	}
}

// withUnclaimed is a project with two replicas of web, and with more reservations than its files name.
func withUnclaimed(t *testing.T) *harness {
	t.Helper()
	h := enter(t)
	here, err := os.Hostname()
	h.must(err)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+40")
	h.asWanted("10.8.0.10", "10.8.0.11")
	h.edit(&ipam.AddReservation{Network: "front", Owner: "shop/web/9"})
	h.byDeploy(here, "shop/web/3", "shop/mail/1", "shop/web/4", "shop/web/5", "shop/asleep/1", "shop/web/6")
	h.byDeploy("beta", "shop/web/7")
	note := "for the fair"
	h.edit(&ipam.AddReservation{Network: "front", Owner: "shop/web/4",
		Wishes: []ipam.Wish{{Address: h.addressOf("shop/web/4")}}},
		&ipam.AddReservation{Network: "front", Owner: "shop/web/5", WantedTerms: ipam.WantedTerms{Note: &note}},
		&ipam.AddReservation{Network: "front", Owner: "shop/web/8"})
	h.engine.Containers = append(h.engine.Containers, replica("web", 6, h.addressOf("shop/web/6").String()))
	h.file("services:\n  web: {image: x, scale: 2, networks: [front]}\n" +
		"  asleep: {image: x, networks: [front], profiles: [night]}" + networks)
	return h
}

// addressOf is the address reserved for an owner, or the zero Addr if there is none.
func (h *harness) addressOf(owner string) netip.Addr {
	h.Helper()
	c := client.New(h.socket)
	defer c.Close()
	all, err := c.Reservations(h.Context(), "front", owner)
	h.must(err)
	if len(all) == 0 {
		return netip.Addr{}
	}
	return all[0].Address
}

// TestPlanUnclaimed: the next deploy ends reservations that a deploy made for replicas the files no longer name,
// even if their containers are gone. A reservation that a person has made or edited is reported and kept. Those of
// another host's deploy are kept (BO-3, BO-15).
func TestPlanUnclaimed(t *testing.T) {
	h := withUnclaimed(t)
	code, out, said := h.berth("plan")
	web := h.addressOf("shop/web/3").String()
	for _, want := range []string{
		"delete    shop/web/3  (the Compose files give web 2 replicas; it has " + web +
			" on front reserved, but no container)",
		"delete    shop/mail/1  (the Compose files no longer have a service mail; it has ",
		"delete    shop/web/6  (the files want 2 of web)",
		"shop: 3 to delete, 2 to keep",
		"note      shop/web/9 has 10.8.0.12 on front reserved, but no container, and the Compose files give web 2 " +
			"replicas; it may not be from a deploy, so it stays: `berth reservation rm --owner " +
			"shop/web/9 --everywhere` ends the reservation",
		"note      shop/web/4 has", "note      shop/web/5 has", "note      shop/web/7 has", "note      shop/web/8 has",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it says nothing of %q", want)
		}
	}
	if code != 2 || strings.Contains(out, "asleep") || strings.Count(out, "shop/web/6") != 1 || t.Failed() {
		t.Errorf("it does %d:\n%s%s", code, out, said)
	}
}

// TestApplyUnclaimed: a saved plan releases what it lists, and is refused if any of that has changed since.
func TestApplyUnclaimed(t *testing.T) {
	h := withUnclaimed(t)
	h.engine.Containers = h.engine.Containers[:2]
	h.edit(&ipam.ReleaseOwner{Owner: "shop/web/6"})
	file := filepath.Join(t.TempDir(), "shop.plan")
	if code, _, said := h.berth("plan", "-o", file); code != 2 {
		t.Fatalf("it does %d: %s", code, said)
	}
	h.edit(&ipam.ReleaseOwner{Owner: "shop/mail/1"})
	if code, _, said := h.berth("apply", file, "--yes"); code != 1 || !strings.Contains(said, "shop/mail/1 is gone") {
		t.Errorf("what has moved: %d: %s", code, said)
	}
	if code, _, said := h.berth("plan", "-o", file); code != 2 {
		t.Fatalf("it does %d: %s", code, said)
	}
	if code, out, said := h.berth("apply", file, "--yes"); code != 0 || !strings.Contains(out, "done shop/web/3: deleted") {
		t.Errorf("it does %d:\n%s%s", code, out, said)
	}
	for _, owner := range []string{"shop/web/3", "shop/mail/1"} {
		if addr := h.addressOf(owner); addr.IsValid() {
			t.Errorf("%s has %s still", owner, addr)
		}
	}
	for _, owner := range []string{"shop/web/1", "shop/web/4", "shop/web/5", "shop/web/7", "shop/web/8", "shop/asleep/1"} {
		if !h.addressOf(owner).IsValid() {
			t.Errorf("%s has nothing any more", owner)
		}
	}
	if code, out, _ := h.berth("plan"); code != 0 || len(h.engine.Writes()) > 0 {
		t.Errorf("afterwards it does %d:\n%s%v", code, out, h.engine.Writes())
	}
}
