package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/test/checkout"
)

// TestPlanningPage runs the examples of docs/planning.md. GA-27
func TestPlanningPage(t *testing.T) { runPage(t, "planning.md", 17, nil) }

// TestPlanningChangesPage runs the examples of docs/planning-changes.md. GA-27
func TestPlanningChangesPage(t *testing.T) { runPage(t, "planning-changes.md", 24, nil) }

// TestImportPage runs the examples of docs/import.md, on the documents that it shows.
func TestImportPage(t *testing.T) {
	runPage(t, "import.md", 11, map[string]string{"yaml": "plan.yaml", "yml": "moved.yaml"})
}

// TestImportNetBoxPage runs the examples of docs/import-netbox.md, on the table that it shows.
func TestImportNetBoxPage(t *testing.T) {
	runPage(t, "import-netbox.md", 5, map[string]string{"csv": "prefixes.csv"})
}

// nextToAnEngine starts the daemon of a page, next to an engine of its own.
const nextToAnEngine = "env BERTH_DOCKER_HOST=unix://$WORK/engine.sock\nenv BERTH_PLUGIN_SOCKET=$WORK/berth.sock\n" +
	"engine start\nexec berth serve --check-every 0 --check-grace 1ms &daemon&\nready\n"

// Tests of the pages whose containers run on that engine.
func TestOwnersPage(t *testing.T) { runPageOn(t, "owners.md", 20, nil, nextToAnEngine) }
func TestFixedAddressesPage(t *testing.T) {
	runPageOn(t, "fixed-addresses.md", 12, nil, nextToAnEngine)
}

// TestEnginesPage sets how containers of a network are put back, as docs/engines.md does.
func TestEnginesPage(t *testing.T) { runPage(t, "engines.md", 4, nil) }

// TestChecksPage runs the examples of docs/checks.md, beside an engine of its own.
func TestChecksPage(t *testing.T) {
	runPageOn(t, "checks.md", 5, nil,
		"env BERTH_DOCKER_HOST=unix://$WORK/engine.sock\nenv BERTH_PLUGIN_SOCKET=$WORK/berth.sock\n"+
			"engine start\nexec berth serve --check-every 0 --check-grace 1ms &daemon&\nready\n")
}

// TestBackupPage runs the examples of docs/backup.md, and the lines of the service that its timer starts.
func TestBackupPage(t *testing.T) {
	unit, err := checkout.Block("docs/backup.md", "ini")
	fine(t, err)
	start, lines := "exec berth serve &daemon&\nready\n", 0
	for line := range strings.Lines(unit) {
		if run, is := strings.CutPrefix(line, "ExecStart="); is {
			start += "exec " + strings.NewReplacer("$$", "$", "%%", "%", "/var/backups", "backups").Replace(run)
			lines++
		}
	}
	if lines != 2 {
		t.Errorf("the unit starts %d programs", lines)
	}
	start += "exec sh -c 'berth state check backups/berth/*.db'\n"
	runPageOn(t, "backup.md", 2, nil, start)
}

// TestHostsPage runs the examples of docs/hosts.md on two hosts that share a store, of which b is the one that
// Docker asks.
func TestHostsPage(t *testing.T) {
	runPageOn(t, "hosts.md", 6, nil, "etcd start\nenv BERTH_STORE=etcd\nenv BERTH_ETCD_ENDPOINTS=$ETCD\n"+
		"exec berth serve --host a &daemon&\nready\nenv BERTH_PLUGIN_SOCKET=$WORK/b.sock\n"+
		"exec berth serve --host b --state b --admin-socket b-admin.sock &b&\nready\n"+
		"exec berth network create lan --space global --subnet 10.77.0.0/24,gateway=10.77.0.1,pool --headroom 16\n")
}

// Tests of the pages whose lines want nothing but a daemon.
func TestMacvlanPage(t *testing.T)        { runPage(t, "macvlan.md", 4, nil) }
func TestOptionsPage(t *testing.T)        { runPage(t, "options.md", 3, nil) }
func TestAccessPage(t *testing.T)         { runPage(t, "access.md", 5, nil) }
func TestHangsPage(t *testing.T)          { runPage(t, "hangs.md", 1, nil) }
func TestPluginNotFoundPage(t *testing.T) { runPage(t, "plugin-not-found.md", 1, nil) }
func TestAddressChangedPage(t *testing.T) { runPage(t, "address-changed.md", 4, nil) }
func TestExitCodesPage(t *testing.T)      { runPage(t, "exit-codes.md", 2, nil) }

// TestEventsPage runs the lines of docs/events.md, which lists each verb.
func TestEventsPage(t *testing.T) {
	runPage(t, "events.md", 7, nil)
	page, err := os.ReadFile("../../docs/events.md")
	fine(t, err)
	for _, verb := range ipam.Verbs() {
		if !strings.Contains(string(page), "`"+verb+"`") {
			t.Errorf("docs/events.md does not list %s", verb)
		}
	}
}

// TestSettingsPage: docs/settings.md has each flag of berth serve.
func TestSettingsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/settings.md")
	fine(t, err)
	serveCommand(cli.New("dev"), emptyHost()).Flags().VisitAll(func(f *pflag.Flag) {
		text := string(page)
		if !strings.Contains(text, "`--"+f.Name+"`") && !strings.Contains(text, "berth serve --"+f.Name) {
			t.Errorf("docs/settings.md does not list --%s", f.Name)
		}
	})
}

// TestPagePage asks for the page as docs/page.md does for programs.
func TestPagePage(t *testing.T) { runPage(t, "page.md", 3, nil) }

// TestMetricsPage asks for the probes as docs/metrics.md does, on the socket and over TLS.
func TestMetricsPage(t *testing.T) {
	runPageOn(t, "metrics.md", 2, nil, "certs\nenv CURL_CA_BUNDLE=ca.pem\n"+
		"exec sh -c 'exec berth serve --docker-host none --plugin-socket berth.sock "+
		"--admin-listen 127.0.0.1:0 --admin-cert daemon.pem --admin-key daemon.key 2>log' &daemon&\nready\nremote log\n")
}

func TestElasticPage(t *testing.T)     { runPage(t, "elastic.md", 9, nil) }
func TestElasticEdgePage(t *testing.T) { runPage(t, "elastic-edge.md", 8, nil) }

// TestSwarmPage plans as docs/swarm.md does; test/engine has the swarms.
func TestSwarmPage(t *testing.T) {
	runPageOn(t, "swarm.md", 3, nil, "etcd start\nenv BERTH_STORE=etcd\nenv BERTH_ETCD_ENDPOINTS=$ETCD\n"+
		"exec berth serve --host a &daemon&\nready\n")
}

// TestLookingPage runs the lines of docs/looking.md, on a host of a cluster.
func TestLookingPage(t *testing.T) {
	runPageOn(t, "looking.md", 17, nil, "etcd start\nenv BERTH_STORE=etcd\nenv BERTH_ETCD_ENDPOINTS=$ETCD\n"+
		"exec berth serve --host a &daemon&\nready\n")
}

// TestClusterPage runs the examples of docs/cluster.md on three hosts; a is the one whose command is run, and what
// Docker would ask of each is in the page's comments.
func TestClusterPage(t *testing.T) {
	start := "etcd start\nenv BERTH_STORE=etcd\nenv BERTH_ETCD_ENDPOINTS=$ETCD\nexec berth serve --host a " +
		"&daemon&\nready\n"
	for _, host := range []string{"b", "c"} {
		start += fmt.Sprintf("exec berth serve --host %[1]s --state %[1]s --plugin-socket %[1]s.sock --admin-socket "+
			"%[1]s-admin.sock &%[1]s&\nready\n", host)
	}
	runPageOn(t, "cluster.md", 5, nil, start)
}

// runPage runs the examples of a page of docs, from the first to the last, on one daemon: each line that begins with "$
// berth", and holds what it says to the lines below it. The first block in each language of files is what is in that
// file. What happens between two of them, and is for nobody to read, stands in a comment: <!-- run: LINE OF A SCRIPT
// -->.
func runPage(t *testing.T, name string, least int, files map[string]string) {
	runPageOn(t, name, least, files, "exec berth serve &daemon&\nready\n")
}

// runPageOn is runPage on the daemon that a script starts.
func runPageOn(t *testing.T, name string, least int, files map[string]string, start string) {
	page, err := os.ReadFile(filepath.Join("../../docs", name))
	fine(t, err)
	examples := pageExamples(string(page))
	if len(examples) < least {
		t.Fatalf("the page has %d examples", len(examples))
	}
	var script strings.Builder
	script.WriteString(start)
	for _, e := range examples {
		script.WriteString(e.script())
	}
	script.WriteString("terminate\nwait daemon\n")
	for language, file := range files {
		_, text, found := strings.Cut(string(page), "\n```"+language+"\n")
		text, _, ended := strings.Cut(text, "\n```\n")
		if !found || !ended {
			t.Fatalf("the page has no block of %s", language)
		}
		fmt.Fprintf(&script, "-- %s --\n%s\n", file, text)
	}
	dir := t.TempDir()
	fine(t, os.WriteFile(filepath.Join(dir, "page.txtar"), []byte(script.String()), 0o600))
	params := scriptParams(dir)
	params.Cmds["says"] = says
	testscript.Run(t, params)
}

// example is a command of the page, and what it says.
type example struct {
	command string
	output  []string
	silent  bool   // the page does not show what it says
	hidden  string // a line of a script instead
}

// pageExamples reads the blocks that are marked as console, and of those that are marked as sh, which show no output,
// the lines that begin with berth or curl.
func pageExamples(page string) (all []example) {
	inside, silent := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		hidden, isHidden := strings.CutPrefix(line, "<!-- run: ")
		switch {
		case isHidden:
			all = append(all, example{hidden: strings.TrimSuffix(hidden, " -->")})
		case strings.HasPrefix(line, "```"):
			inside, silent = line == "```console", line == "```sh"
		case silent && (strings.HasPrefix(line, "berth ") || strings.HasPrefix(line, "curl ")):
			// the shell leaves out what is remarked
			all = append(all, example{command: line, silent: true})
		case inside && isCommand:
			all = append(all, example{command: command})
		case inside && all[len(all)-1].goesOn():
			last := &all[len(all)-1]
			last.command += " " + strings.TrimSpace(line)
		case inside:
			last := &all[len(all)-1]
			last.output = append(last.output, line)
		}
	}
	return all
}

// goesOn tells whether the next line belongs to the command: a quote is open.
func (e example) goesOn() bool { return strings.Count(e.command, "'")%2 == 1 && len(e.output) == 0 }

// asPublished are places that pages name as they are on a reader's machine, and what stands for them here.
var asPublished = strings.NewReplacer("/run/berth/admin.sock", "$BERTH_ADMIN_SOCKET",
	"https://berth.example:7890", "https://$REMOTE")

// script runs the command and compares. A refusal is the last line, on standard error.
func (e example) script() string {
	if e.hidden != "" {
		if of, is := strings.CutPrefix(e.hidden, "exec berth "); is && !strings.HasSuffix(of, "&") {
			return "berth " + of + "\n"
		}
		return e.hidden + "\n"
	}
	if e.silent {
		command := e.command
		if of, is := strings.CutPrefix(asPublished.Replace(command), "curl "); is {
			command = "curl --fail " + of // what is refused is not what the page means to show
		}
		return "exec sh -c '" + strings.ReplaceAll(command, "'", "''") + "'\n"
	}
	run := ""
	if n := len(e.output); n > 0 && strings.HasPrefix(e.output[n-1], "berth: ") {
		run = "exits 1 "
		if found := regexp.MustCompile(`^berth( elastic| state)? check|--check`); found.MatchString(e.command) {
			run = "exits 2 "
		} else if strings.HasSuffix(e.output[n-1], " found") {
			run = "" // a list that is empty
		}
	} else if n > 0 && strings.HasPrefix(e.command, "berth plan diff ") {
		run = "exits 2 " // it differs
	}
	command := e.command
	if !strings.HasPrefix(command, "berth ") { // a shell's line
		command = "exec sh -c '" + strings.ReplaceAll(asPublished.Replace(command), "'", "''") + "'"
	}
	var want strings.Builder
	for _, line := range e.output {
		fmt.Fprintf(&want, " '%s'", strings.ReplaceAll(line, "'", "''"))
	}
	return run + command + "\nsays" + want.String() + "\n"
}

// says LINE... holds what the last command said to the lines. An ellipsis stands for whatever there is, alone for any
// number of lines.
func says(ts *testscript.TestScript, _ bool, want []string) {
	noted, got := ts.ReadFile("stderr"), ts.ReadFile("stdout")
	form := "^"
	for _, line := range want {
		if line == "…" {
			form += `(.*\n)+?`
			continue
		}
		form += strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`
	}
	whole := regexp.MustCompile(form + "$")
	// what is noted on the way comes first, an error last
	if !whole.MatchString(noted+got) && !whole.MatchString(got+noted) {
		ts.Fatalf("it says\n%s\nand not\n%s", noted+got, strings.Join(want, "\n"))
	}
}
