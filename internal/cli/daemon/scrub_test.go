package daemon

import "testing"

// A scrubbed log line keeps the problem, and drops names and addresses.
func TestScrub(t *testing.T) {
	s := newScrubber()
	s.names["mail"], s.names["front"] = true, true
	for _, c := range []struct{ line, want string }{
		{`level=warning msg="cannot reach the engine; trying again until it answers" error="dial unix /run/x.sock: no"`,
			"warning cannot reach the engine; trying again until it answers error=…"},
		{`level=info msg="10.8.0.80 is held by mail of front, since 12s: ask \"mail\"" host=harbour`,
			"info <value> is held by <name> of <name>, since 12s: ask <text> host=…"},
		{`level=info msg="aa:bb:cc:00:11:22 has 2001:db8::1/64 on net-3bf7afb2"`, "info <value> has <value> on <value>"},
		{`panic: runtime error: index out of range [5] with length 3`,
			`panic: runtime error: index out of range [5] with length 3`},
		{`/srv/secret/berth.go:12 +0x1d`, `<value> <value>`},
	} {
		if got := s.logLine(c.line); got != c.want {
			t.Errorf("%s\nis     %s\nwanted %s", c.line, got, c.want)
		}
	}
}
