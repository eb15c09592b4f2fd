package berth_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shellLine matches a line for a shell that begins with one of the pages' programs.
var shellLine = regexp.MustCompile(`^(\$ )?(sudo )?(berth|docker|docker-compose|make|systemctl|etcdctl|curl|export|ip|apt|apt-get|` +
	`dpkg|source|kill|cd|mkdir|git) `)

// silentLine matches a line of an sh block that is run.
var silentLine = regexp.MustCompile(`^(berth|curl) `)

// pageOf finds the pages that tests of cmd/berth run: all lines of console blocks, and the lines of sh blocks that
// begin with berth or curl.
var pageOf = regexp.MustCompile(`(?m)(?:runPage\(t, "|^\t\t)([a-z-]+\.md)(?:"| +\|)`)

// linesRun lists the tests that run a page's lines unchanged, by the page and the heading above them.
var linesRun = map[string]string{
	"README.md ## In three minutes":             "test/machine TestNewcomer",
	"README.md ## Plan it":                      "test/machine TestNewcomer",
	"docs/pool-overlaps.md":                     "test/engine TestErrorPages",
	"docs/address-in-use.md":                    "test/engine TestErrorPages",
	"docs/no-free-pool.md":                      "test/engine TestErrorPages",
	"docs/fixed-ip-refused.md":                  "test/engine TestErrorPages",
	"docs/deploy.md":                            "test/engine TestDeployPage",
	"docs/upgrade.md ## The managed plugin":     "test/engine TestPluginUpgrade",
	"docs/install.md ## Container":              "test/engine TestContainer",
	"docs/install.md ## Debian package":         "test/machine TestPackage",
	"docs/quick-start.md":                       "test/machine TestPages",
	"docs/upgrade.md ## A package or a service": "test/machine TestPackage",

	"docs/access.md ## Over the network":                     "test/machine TestPages",
	"docs/backup.md ## Back up every day":                    "test/machine TestPages",
	"docs/backup.md ## Restore":                              "test/machine TestPages",
	"docs/backup.md ## Restore a cluster":                    "test/machine TestClusterPages",
	"docs/cluster-recovery.md ## Recover":                    "test/machine TestClusterPages",
	"docs/cluster.md ## Bring along an existing host":        "test/machine TestClusterPages",
	"docs/cluster.md ## Create a bridge on each host":        "test/machine TestClusterPages",
	"docs/cluster.md ## Run etcd":                            "test/machine TestClusterPages",
	"docs/cluster.md ## Start containers":                    "test/machine TestClusterPages",
	"docs/elastic-edge.md ## Run it":                         "test/machine TestPages, test/engine TestElasticContainer",
	"docs/hosts.md ## A managed plugin":                      "test/machine TestPluginPages",
	"docs/hosts.md ## Require a user":                        "test/machine TestClusterPages",
	"docs/hosts.md ## Settings":                              "test/machine TestClusterPages",
	"docs/import.md ## Take an import back":                  "test/machine TestPages",
	"docs/leave.md ## Leave":                                 "test/machine TestPages",
	"docs/adopt.md ## A Compose project":                     "test/machine TestPages",
	"docs/compose.md ## Give the project its addresses":      "test/machine TestPages",
	"docs/compose.md ## Without an override":                 "test/machine TestPages",
	"docs/dhcp.md ## Create the network":                     "test/machine TestPages",
	"docs/dhcp.md ## Start the edge":                         "test/machine TestPages",
	"docs/dns.md ## Containers":                              "test/machine TestPages",
	"docs/looking.md ## What was":                            "test/machine TestPages",
	"docs/macvlan.md ## Reaching the host":                   "test/machine TestPages",
	"docs/macvlan.md ## Create the Docker network":           "test/machine TestPages",
	"docs/metrics.md ## Scraping it":                         "test/machine TestPages",
	"docs/options.md ## On a planned network":                "test/machine TestPages",
	"docs/fixed-addresses.md ## Start the container with it": "test/machine TestPages",
	"docs/install.md ## Completion and manual pages":         "test/machine TestPackage",
	"docs/install.md ## Managed plugin":                      "test/machine TestPluginPages",
	"docs/page.md ## In your own browser":                    "test/machine TestPages",
	"docs/planning.md ## Plan it":                            "test/machine TestPages",
	"docs/swarm.md ## Node-local networks out of one plan":   "test/machine TestPluginPages",
	"docs/swarm.md ## Overlay networks":                      "test/machine TestPluginPages",
	"docs/swarm.md ## What each node needs":                  "test/machine TestPluginPages",
	"docs/webhooks.md # Webhooks":                            "test/machine TestPages",
	"docs/webhooks.md ## Status":                             "test/machine TestPages",
}

// linesNotRun are the lines that no test takes from their page, as `page: beginning`. Each has the test or script
// that runs the same with other names and addresses, or after "none: " the reason why none can.
var linesNotRun = []struct{ lines, why string }{
	{"CONTRIBUTING.md: make ", "none: they are the tests"},
	{"README.md: make demo", "test/engine TestDemo, from the script that it runs"},
	{"README.md: make test", "none: it is the tests"},
	{"docs/dns.md: berth ", "cmd/berth/testdata/dns.txtar, on a port that is free; cmd/berth TestServeLines reads the flags"},
	{"docs/dns-forward.md: berth dns ", "cmd/berth/testdata/dns.txtar, with files of its own"},
}

// TestLinesRun: a test runs each shell line in README.md and the pages unchanged, or the line is one of the
// exceptions, with its reason.
func TestLinesRun(t *testing.T) {
	run := pagesRun(t)
	used := make([]bool, len(linesNotRun))
	found := 0
	for page, text := range pages(t) {
		for _, l := range pageLines(text) {
			found++
			if by := linesRun[page]; by != "" {
				continue
			}
			if by := linesRun[page+" "+l.below]; by != "" {
				continue
			}
			if run[page] && (l.block == "console" || l.block == "sh" && silentLine.MatchString(l.text)) {
				continue
			}
			if !excepted(page, l.text, used) {
				t.Errorf("%s, below %q: no test runs this line: %s", page, l.below, l.text)
			}
		}
	}
	for i, e := range linesNotRun {
		if !used[i] {
			t.Errorf("no page has the line of this exception: %s", e.lines)
		}
	}
	if found < 200 {
		t.Errorf("the pages have %d lines for a shell: the test does not see them", found)
	}
}

// excepted tells whether a line is one of the exceptions, and marks it in used.
func excepted(page, line string, used []bool) bool {
	for i, e := range linesNotRun {
		of, begins, _ := strings.Cut(e.lines, ": ")
		if of == page && strings.HasPrefix(line, begins) {
			used[i] = true
			return true
		}
	}
	return false
}

// TestLinesRunBy: the tests listed for the lines exist.
func TestLinesRunBy(t *testing.T) {
	for _, tests := range linesRun {
		for by := range strings.SplitSeq(tests, ", ") {
			holdTest(t, by)
		}
	}
	for _, e := range linesNotRun {
		tests := testNamed.FindAllString(e.why, -1)
		for _, by := range tests {
			holdTest(t, by)
		}
		scripts := scriptNamed.FindAllString(e.why, -1)
		for _, script := range scripts {
			holdScript(t, script, e.lines)
		}
		if reason := strings.HasPrefix(e.why, "none: "); reason != (len(tests)+len(scripts) == 0) {
			t.Errorf("%s: %q names a test or a script, or why there can be none", e.lines, e.why)
		}
	}
}

// A test is named with its directory, a script by its path.
var (
	testNamed   = regexp.MustCompile(`(?:driver|(?:cmd|test|internal|store)/[a-z/]+) (?:Test|Fuzz)\w+`)
	scriptNamed = regexp.MustCompile(`cmd/berth/testdata/\w+\.txtar`)
)

// holdTest checks that a test exists.
func holdTest(t *testing.T, by string) {
	t.Helper()
	dir, name, _ := strings.Cut(by, " ")
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return
		}
	}
	t.Errorf("there is no %s in %s", name, dir)
}

// holdScript checks that a script exists and runs the command of a line.
func holdScript(t *testing.T, script, line string) {
	t.Helper()
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(line, ": ")
	if strings.HasPrefix(command, "berth ") && !strings.Contains(string(text), strings.TrimSpace(command)) {
		t.Errorf("%s does not run %q", script, command)
	}
}

// pagesRun are the pages that tests of cmd/berth run.
func pagesRun(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("cmd/berth/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range pageOf.FindAllStringSubmatch(string(text), -1) {
			run["docs/"+found[1]] = true
		}
	}
	return run
}

// pageLine is a line for a shell, with its continuations, the language of its block and the heading above it.
type pageLine struct{ text, block, below string }

// pageLines are the shell lines of a page. Lines of a file that the page shows, such as a script, do not count.
func pageLines(page string) (all []pageLine) {
	block, below, inside := "", "", false
	for line := range strings.Lines(strings.ReplaceAll(page, "\\\n", " ")) {
		line = strings.TrimRight(line, "\n")
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```"):
			inside, block = !inside, strings.TrimPrefix(trimmed, "```")
		case !inside && strings.HasPrefix(line, "#"):
			below = line
		case inside && strings.HasPrefix(line, "#!"):
			block = "script"
		case inside && block == "console" && !strings.HasPrefix(line, "$ "): // the output of a command
		case inside && (block == "" || block == "sh" || block == "console") && shellLine.MatchString(trimmed):
			text, _, _ := strings.Cut(strings.TrimPrefix(trimmed, "$ "), "  #")
			all = append(all, pageLine{text: strings.TrimSpace(text), block: block, below: below})
		}
	}
	return all
}
