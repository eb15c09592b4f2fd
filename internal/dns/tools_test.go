package dns

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tool is a program of bind9-dnsutils or bind9-utils (scripts/needs).
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin", "/usr/sbin") {
		if path := filepath.Join(dir, name); exec.Command("test", "-x", path).Run() == nil {
			return path
		}
	}
	t.Fatalf("there is no %s: scripts/needs test installs it", name)
	return ""
}

// dig reads the answers as this server means them, by UDP and TCP.
func TestDig(t *testing.T) {
	s := run(t, Config{Index: told(sample(), crowd(60))})
	dig := tool(t, "dig")
	for _, c := range []struct{ args, want string }{
		{"web.home.lan.example A", "192.0.2.10"},
		{"web.home.lan.example AAAA", "2001:db8:1::10"},
		{"+tcp web.home.lan.example A", "192.0.2.10"},
		{"-x 192.0.2.10", "web.home.lan.example."},
		{"-x 2001:db8:1::10", "web.home.lan.example."},
		{"-x 203.0.113.2", "1.api.shop.elastic.lan.example."},
		{"lan.example NS", "ns.lan.example."},
		{"lan.example SOA", "ns.lan.example. hostmaster.lan.example. 1800000002 5 5 60 1"},
		{"nobody.home.lan.example A", ""},
	} {
		out, err := exec.Command(dig, append([]string{"@127.0.0.1", "-p", fmt.Sprint(s.Addrs()[0].Port()), "+short", "+norec"},
			strings.Fields(c.args)...)...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("dig %s: %q, %v; want %q", c.args, got, err, c.want)
		}
	}
	out, err := exec.Command(dig, "@127.0.0.1", "-p", fmt.Sprint(s.Addrs()[0].Port()), "+norec", "+noignore", "+bufsize=512",
		"api.shop.crowd.lan.example").CombinedOutput()
	if err != nil || strings.Count(string(out), "\tIN\tA\t") != 60 || !strings.Contains(string(out), "status: NOERROR") ||
		strings.Contains(string(out), "WARNING") || strings.Contains(string(out), "Warning") {
		t.Errorf("%v: %s", err, out)
	}
}

// named-checkzone accepts the written zones without a complaint.
func TestCheckZone(t *testing.T) {
	check := tool(t, "named-checkzone")
	x := told(sample(), crowd(60))
	for zone, write := range map[string]func(*os.File) error{
		"lan.example": func(f *os.File) error { return x.WriteZone(f, []netip.Addr{netip.MustParseAddr("127.0.0.1")}) },
		"2.0.192.in-addr.arpa": func(f *os.File) error {
			return x.WriteReverse(f, netip.MustParsePrefix("192.0.2.0/24"))
		},
		"0.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa": func(f *os.File) error {
			return x.WriteReverse(f, netip.MustParsePrefix("2001:db8:1::/64"))
		},
	} {
		path := filepath.Join(t.TempDir(), "zone")
		f, err := os.Create(path)
		must(t, err)
		must(t, write(f))
		must(t, f.Close())
		out, err := exec.Command(check, "-i", "local", "-k", "fail", "-m", "fail", "-n", "fail", "-r", "fail", zone,
			path).CombinedOutput()
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "OK") || strings.Count(string(out), "\n") != 2 {
			t.Errorf("%s: %v: %s", zone, err, out)
		}
	}
}

// TestFilesOfHostileNames: a hostile name adds no line, record or directive to a file for other servers.
func TestFilesOfHostileNames(t *testing.T) {
	news := sample()
	for i, name := range []string{"a\n203.0.113.66 bank.example", "b\r\n$INCLUDE /etc/passwd",
		"c 60 IN A 203.0.113.66 ;",
		"d\x00", "@", "*", "..", `e\010`, "f) (", `"g`} {
		news.Set = append(news.Set, of(1, fmt.Sprintf("192.0.2.%d", 100+i), name))
	}
	x := told(news)
	for _, file := range []struct {
		write func(io.Writer) error
		head  int // lines that belong to no name
		line  string
	}{
		{x.WriteHosts, 1, `^[0-9a-f.:]+( [a-z0-9.-]+)+$`},
		{func(w io.Writer) error { return x.WriteZone(w, nil) }, 4, `^[a-z0-9.-]+\t5\tIN\tA{1,4}\t[0-9a-f.:]+$`},
		{func(w io.Writer) error { return x.WriteReverse(w, netip.MustParsePrefix("192.0.2.0/24")) }, 4,
			`^[0-9.]+in-addr\.arpa\.\t5\tIN\tPTR\t[a-z0-9.-]+$`},
	} {
		var b strings.Builder
		must(t, file.write(&b))
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")[file.head:]
		form := regexp.MustCompile(file.line)
		if len(lines) < 15 {
			t.Errorf("only %d lines:\n%s", len(lines), b.String())
		}
		for _, line := range lines {
			if !form.MatchString(line) {
				t.Errorf("a line is %q", line)
			}
		}
	}
}

// The file for /etc/hosts has each address with all of its names, the long one first.
func TestHosts(t *testing.T) {
	var b strings.Builder
	must(t, told(sample()).WriteHosts(&b))
	for _, line := range []string{
		"192.0.2.10 web.home.lan.example\n",
		"192.0.2.11 printer.home.lan.example printer.lan.example\n",
		"192.0.2.30 media-tv-1.home.lan.example ",
		"2001:db8:1::10 web.home.lan.example\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("there is no %q in\n%s", line, b.String())
		}
	}
}
