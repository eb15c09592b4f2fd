// Package page holds the tests of Berth's page in a real browser, Debian's chromium: a daemon, `berth page` before it,
// and a browser that opens the link and follows every other one that it finds. They run by `make page`, take nothing of
// the machine but ports of the loopback, and leave nothing behind.
//
// The site (site_test.go) is what is looked at. A browser (browser_test.go) looks in one of several ways: narrow or
// wide, dark or light, with scripts or without. The walk (walk_test.go) holds each view to the checks (checks.js, named
// in docs/dev/page-checks.md), and goes through it by keyboard (keys_test.go). Screenshots for docs/page.md are made by
// shots_test.go.
package page
