//go:build page

package page

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestRefreshes: an open view shows changes and keeps the focus, and a user can stop the refreshing.
func TestRefreshes(t *testing.T) {
	s := openSite(t)
	b := openBrowsers(t)(t, looks[3])
	b.open(s.link)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('main a[href*="network/"]').focus()`))
	focused := ask[string](b, "document.activeElement.getAttribute('href')")
	s.berth("network", "create", "appeared", "--subnet", "203.0.113.0/28,pool=203.0.113.2-203.0.113.9")
	b.awaits("document.querySelector('main').innerText.includes('appeared')")
	if now := ask[string](b, "document.activeElement.getAttribute('href')"); now != focused {
		t.Errorf("the focus was at %q and is at %q", focused, now)
	}
	check(b, "the networks, refreshed")
	b.do(chromedp.Click(chromedp.CSS(".live button")))
	b.awaits("document.querySelector('.live').innerText.includes('not refreshed')")
	s.berth("network", "create", "later", "--subnet", "203.0.113.16/28")
	b.do(chromedp.Click(chromedp.CSS(".live button"))) // now it shows what it has missed
	b.awaits("document.querySelector('main').innerText.includes('later')")
	check(b, "the networks, refreshed again")
}

// TestForms reserves an address without a mouse and without scripts.
func TestForms(t *testing.T) {
	s := openSite(t)
	b := openBrowsers(t)(t, looks[1])
	b.open(s.link)
	b.follow("front")
	b.follow("Reserve an address")
	check(b, "the form")
	for field, value := range map[string]string{"address": "192.0.2.99", "owner": "printer", "note": evil} {
		b.do(chromedp.Focus(chromedp.CSS("#f-"+field)), chromedp.KeyEvent(value))
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.awaits("document.body.innerText.includes('Nothing has been changed yet') && !!document.querySelector('.firm')")
	check(b, "what would change")
	if list := s.berth("reservation", "ls", "front"); strings.Contains(list, "printer") {
		t.Fatalf("reserved before it was agreed to:\n%s", list)
	}
	b.do(chromedp.Focus(chromedp.CSS(".firm")), chromedp.KeyEvent(kb.Enter))
	b.awaits("location.pathname === '/address/192.0.2.99'")
	check(b, "the address")
	if list := s.berth("reservation", "ls", "front"); !strings.Contains(list, "printer") {
		t.Errorf("not reserved:\n%s", list)
	}
	if text := ask[string](b, "document.body.innerText"); !strings.Contains(text, "printer") {
		t.Errorf("the address does not say whose it is: %s", text)
	}
}

// TestStranger: no one gets in without the link, or under another name.
func TestStranger(t *testing.T) {
	s := openSite(t)
	b := openBrowsers(t)(t, looks[0])
	address, _, _ := strings.Cut(s.link, "?")
	for _, to := range []struct {
		address string
		status  int64
	}{{address, 403}, {address + "?secret=guess", 403}, {strings.Replace(address, "127.0.0.1", "berth.localhost", 1), 421}} {
		if status := b.open(to.address); status != to.status {
			t.Errorf("%s is answered with %d, not %d", to.address, status, to.status)
		}
	}
	b.open(s.link)
	if cookie := ask[string](b, "document.cookie"); cookie != "" {
		t.Errorf("scripts see the cookie: %s", cookie)
	}
}
