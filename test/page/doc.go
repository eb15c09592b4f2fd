// Package page tests Berth's page in a real browser, Debian's chromium. A daemon and `berth page` serve it, and the
// browser follows every link. `make page` runs the tests. They use only ports of the loopback, and leave nothing
// behind.
//
// site_test.go sets up the site. A browser (browser_test.go) has one of several modes: narrow or wide, dark or light,
// with or without scripts. The walk (walk_test.go) runs the checks on each view (checks.js, named in
// docs/dev/page-checks.md) and uses the keyboard (keys_test.go). shots_test.go makes the screenshots of docs/page.md.
package page
