package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/test/lab"
)

// pageStarts are the daemons that pages run on: for most pages a single daemon.
var pageStarts = map[string]string{
	"": "exec berth serve &daemon&\nready\n",
	"engine": `
env BERTH_DOCKER_HOST=unix://$WORK/engine.sock
env BERTH_PLUGIN_SOCKET=$WORK/berth.sock
engine start
exec berth serve --check-every 0 --check-grace 1ms &daemon&
ready
`,
	"tls": `
certs
env CURL_CA_BUNDLE=ca.pem
env BERTH_ADMIN_CERT=daemon.pem
env BERTH_ADMIN_KEY=daemon.key
exec sh -c 'exec berth serve --plugin-socket berth.sock --admin-listen 127.0.0.1:0 2>log' &daemon&
ready
remote log
`,
	"cluster": startCluster,
	// Docker asks the second of two hosts.
	"hosts": startCluster + `
env BERTH_PLUGIN_SOCKET=$WORK/b.sock
exec berth serve --host b --state b --admin-socket b-admin.sock &b&
ready
exec berth network create lan --space global --subnet 10.77.0.0/24,gateway=10.77.0.1,pool --headroom 16
`,
	// The page's comments have Docker's requests on each of the three hosts. The commands run on a.
	"three": startCluster + `
exec berth serve --host b --state b --plugin-socket b.sock --admin-socket b-admin.sock &b&
ready
exec berth serve --host c --state c --plugin-socket c.sock --admin-socket c-admin.sock &c&
ready
`,
}

const startCluster = `
etcd start
env BERTH_STORE=etcd
env BERTH_ETCD_ENDPOINTS=$ETCD
exec berth serve --host a &daemon&
ready
`

// TestPages runs the examples of each page, at least that many, with some of its blocks as files. GA-27
func TestPages(t *testing.T) {
	for row := range ipamtest.Rows(4, `
		access.md           | 5
		address-changed.md  | 4
		adopt.md            | 3  | engine
		api.md              | 25 | tls
		checks.md           | 5  | engine
		cluster.md          | 5  | three
		compose.md          | 7  |  | yaml=compose.yaml
		elastic-edge.md     | 8
		elastic.md          | 9
		engines.md          | 4
		events.md           | 7
		exit-codes.md       | 2
		fixed-addresses.md  | 12 | engine
		hangs.md            | 1
		hosts.md            | 6  | hosts
		import-netbox.md    | 5  |  | csv=prefixes.csv
		import.md           | 11 |  | yaml=plan.yaml yml=moved.yaml
		looking.md          | 17 | cluster
		macvlan.md          | 4
		metrics.md          | 2  | tls
		options.md          | 3
		owners.md           | 20 | engine
		page.md             | 3
		planning-changes.md | 24
		planning.md         | 17
		plugin-not-found.md | 1
		swarm.md            | 3  | cluster
	`) {
		least, err := strconv.Atoi(row[1])
		fine(t, err)
		t.Run(row[0], func(t *testing.T) { runPage(t, row[0], least, row[3], pageStarts[row[2]]) })
	}
}

// TestBackupPage runs the examples of docs/backup.md, and the lines of the service that its timer starts.
func TestBackupPage(t *testing.T) {
	unit, err := lab.Block("docs/backup.md", "ini")
	fine(t, err)
	start, lines := pageStarts[""], 0
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
	runPage(t, "backup.md", 2, "", start)
}

// TestEventsListed: docs/events.md lists each verb.
func TestEventsListed(t *testing.T) {
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
	serveCommand(emptyHost()).Command(cli.New("dev")).Flags().VisitAll(func(f *pflag.Flag) {
		text := string(page)
		if !strings.Contains(text, "`--"+f.Name+"`") && !strings.Contains(text, "berth serve --"+f.Name) {
			t.Errorf("docs/settings.md does not list --%s", f.Name)
		}
	})
}

// runPage runs the examples of a page of docs in order, on the daemon that a script starts. It runs each line that
// begins with "$ berth", and compares the output with the lines below it. The first block of each language in
// files is written to the named file. Steps between two examples that readers do not see are in a comment: <!--
// run: LINE OF A SCRIPT -->.
func runPage(t *testing.T, name string, least int, files, start string) {
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
	for file := range strings.FieldsSeq(files) {
		language, file, _ := strings.Cut(file, "=")
		text, err := lab.Block("docs/"+name, language)
		fine(t, err)
		fmt.Fprintf(&script, "-- %s --\n%s", file, text)
	}
	dir := t.TempDir()
	fine(t, os.WriteFile(filepath.Join(dir, "page.txtar"), []byte(script.String()), 0o600))
	params := scriptParams(dir)
	params.Cmds["says"] = says
	testscript.Run(t, params)
}

// example is a command of the page with its output.
type example struct {
	command string
	output  []string
	silent  bool   // the page does not show the output
	hidden  string // a line of a script instead
}

// pageExamples reads the console blocks, and from sh blocks, which show no output, the lines that begin with berth
// or curl.
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
			// The shell skips comments.
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

// goesOn tells whether the next line belongs to the command: a quote is still open.
func (e example) goesOn() bool { return strings.Count(e.command, "'")%2 == 1 && len(e.output) == 0 }

// asPublished replaces the places that pages name on a reader's machine by those of the test.
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
			command = "curl --fail " + of // no page means to show a refused request
		}
		return "exec sh -c '" + strings.ReplaceAll(command, "'", "''") + "'\n"
	}
	run := ""
	if n := len(e.output); n > 0 && strings.HasPrefix(e.output[n-1], "berth: ") {
		run = "exits 1 "
		if found := regexp.MustCompile(`^berth( elastic| state)? check|--check`); found.MatchString(e.command) {
			run = "exits 2 "
		} else if strings.HasSuffix(e.output[n-1], " found") {
			run = "" // the list is empty
		}
	} else if n > 0 && strings.HasPrefix(e.command, "berth plan diff ") {
		run = "exits 2 " // there are differences
	}
	command := e.command
	if !strings.HasPrefix(command, "berth ") { // a line for the shell
		command = "exec sh -c '" + strings.ReplaceAll(asPublished.Replace(command), "'", "''") + "'"
	}
	var want strings.Builder
	for _, line := range e.output {
		fmt.Fprintf(&want, " '%s'", strings.ReplaceAll(line, "'", "''"))
	}
	return run + command + "\nsays" + want.String() + "\n"
}

// says LINE... compares the output of the last command with the lines. An ellipsis stands for any text, and alone
// for any number of lines.
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
	// Notes come first, an error comes last.
	if !whole.MatchString(noted+got) && !whole.MatchString(got+noted) {
		ts.Fatalf("it says\n%s\nand not\n%s", noted+got, strings.Join(want, "\n"))
	}
}
