package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
)

// asked are the command lines of all commands that list or show something, in the state of sameforms.txtar.
// Commands that change something are not included. A command that is missing here fails the script: add arguments
// with which it prints something.
var asked = map[string][]string{
	"address ls": {"", "net1"}, "check": {""}, "deploy history": {"shop"},
	"deploy orphans ls": {"--docker-host unix:///nowhere"}, "deploy status": {"", "shop"},
	"dns ls": {"--zone lan.example"}, "elastic account ls": {""}, "elastic check": {""},
	"elastic ls": {""}, "elastic range ls": {""}, "elastic show": {"203.0.113.0", "203.0.113.1"}, "elastic usage": {""},
	"events": {"", "--verb network.create"}, "exclusion ls": {"", "net1"},
	"find": {"10.8.0.11", "shop-web-1", "router", "net"}, "host ls": {""},
	"host show": {"alpha"}, "inspect": {"net1", "10.8.0.2", "shop", "203.0.113.0"}, "lease ls": {"", "--all"},
	"network free": {"net1", "net1 --next", "null"}, "network ls": {""}, "network show": {"net1", "null"}, "pin": {"--check"}, "pool ls": {"", "net1"},
	"reservation ls": {"", "net1"}, "status": {""}, "subnet ls": {"", "net1"}, "token ls": {""},
	"version": {""}, "who": {"10.8.0.2", "10.8.0.11", "router", "203.0.113.0"},
}

// changing are the commands that have --format for their changes but no --dry-run. A scan of a LAN with --record
// is one too, and needs an edge (test/edge TestScan).
var changing = []string{"plan apply", "plan diff", "deploy apply", "deploy plan", "deploy recreate", "deploy start", "deploy stop",
	"lan scan"}

// clocks are the fields that change between two calls.
var clocks = map[string][]string{"check": {"taken", "seen"}, "elastic usage": {"hours", "until"}, "elastic check": {"taken", "seen"},
	"status": {"now", "uptime", "taken", "seen", "age", "fresh", "commits", "conflicts", "updates", "runs", "last"}}

// forms compares the JSON with the YAML of each command in asked.
func forms(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: forms")
	}
	found := 0
	eachCommand(func(cmd *cobra.Command) {
		f, name := cmd.Flags(), strings.TrimPrefix(cmd.CommandPath(), "berth ")
		if f.Lookup("format") == nil || f.Lookup("dry-run") != nil && f.Lookup("quiet") == nil {
			return // it changes something
		}
		lines, known := asked[name]
		if !known && !slices.Contains(changing, name) {
			ts.Fatalf("berth %s has --format: say in `asked` how it is asked", name)
		}
		for _, line := range lines {
			const tries = 5 // something may happen between the two calls
			var err error
			for range tries {
				if err = sameForms(ts, name, line); err == nil {
					break
				}
			}
			ts.Check(err)
			found++
		}
	})
	if found < len(asked) {
		ts.Fatalf("%d of %d command lines were asked: `asked` names what there is not", found, len(asked))
	}
}

func sameForms(ts *testscript.TestScript, name, line string) error {
	inJSON, err := readJSON(said(ts, name, line, "json"))
	if err != nil {
		return fmt.Errorf("berth %s %s --format json: %w", name, line, err)
	}
	if name != "events" { // which prints one object a line
		inJSON = inJSON.([]any)[0]
	}
	var inYAML any
	if err := yaml.Unmarshal([]byte(said(ts, name, line, "yaml")), &inYAML); err != nil {
		return fmt.Errorf("berth %s %s --format yaml: %w", name, line, err)
	}
	inYAML = plainYAML(inYAML)
	for _, clock := range clocks[name] {
		without(inJSON, clock)
		without(inYAML, clock)
	}
	if all, ok := inJSON.([]any); ok && len(all) == 0 {
		return fmt.Errorf("berth %s %s says nothing: nothing was compared", name, line)
	}
	if !reflect.DeepEqual(inJSON, inYAML) {
		return fmt.Errorf("berth %s %s is in JSON\n%v\nand in YAML\n%v", name, line, inJSON, inYAML)
	}
	return nil
}

// said is the output of a command in one format. Exit code 1 of a check with findings is ignored here.
func said(ts *testscript.TestScript, name, line, form string) string {
	words := append(strings.Fields(name+" "+line), "--format", form)
	var out, failed bytes.Buffer
	if code := berth(ts, words, &out, &failed); code != 0 && !strings.Contains(name, "check") && name != "pin" {
		ts.Fatalf("berth %s: %s", strings.Join(words, " "), failed.String())
	}
	return out.String()
}

// readJSON reads all values of a text, one after the other. Numbers keep their spelling.
func readJSON(text string) (any, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	all := []any{}
	for {
		var one any
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}

// plainYAML turns numbers into JSON numbers. Other values stay: a non-text value must be non-text in JSON too.
func plainYAML(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = plainYAML(value)
		}
	case []any:
		for i, value := range v {
			v[i] = plainYAML(value)
		}
	case int, int64, uint64, float64:
		return json.Number(fmt.Sprint(v))
	}
	return v
}

// without removes a field at every depth.
func without(v any, field string) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, field)
		for _, value := range v {
			without(value, field)
		}
	case []any:
		for _, value := range v {
			without(value, field)
		}
	}
}

// view is a table of the page that shows the same as a list.
type view struct {
	path, table string
	list        string
	key         string            // the column of the page that identifies a row
	all         bool              // the page has only the rows of the list
	as          map[string]string // columns with another name in the list; empty: not comparable
}

// counted are the counts of the page, under their names in lists.
func counted(as map[string]string) map[string]string {
	for _, count := range []string{"leased", "quarantined", "reserved", "excluded", "free"} {
		as[count] = "use." + count
	}
	return as
}

func viewed() []view {
	return []view{
		{"/", "networks", "network ls", "network_id", true, counted(map[string]string{"network": "name",
			"network_id": "id"})},
		{"/network/net1", "subnets", "subnet ls net1", "subnet_id", true, counted(map[string]string{"subnet": "cidr",
			"subnet_id": "id"})},
		{"/subnet/ID", "addresses", "lease ls --subnet 10.8.0.0/24", "address", false,
			map[string]string{"state": "", "pool": ""}},
		{"/hosts", "hosts", "host ls", "name", true, nil},
		{"/elastic", "elastic", "elastic ls", "address", true, nil},
		{"/elastic", "ranges", "elastic range ls", "range", true, nil},
		{"/events", "events", "events", "id", true, nil},
	}
}

// views compares the page with the lists, in each column that both have.
func views(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: views")
	}
	for _, v := range viewed() {
		rows, err := readJSON(said(ts, v.list, "", "json"))
		ts.Check(err)
		listed := rows.([]any)
		if v.list != "events" {
			listed = listed[0].([]any)
		}
		if strings.HasSuffix(v.path, "ID") {
			subnet, err := readJSON(said(ts, "subnet ls net1", "", "json"))
			ts.Check(err)
			v.path = strings.TrimSuffix(v.path, "ID") + textAt(subnet.([]any)[0].([]any)[0], "id")
		}
		_, answer := asksAPI(ts, "GET", v.path+"?format=json", "")
		page, err := readJSON(answer)
		ts.Check(err)
		shown, _ := page.([]any)[0].(map[string]any)[v.table].([]any)
		if len(listed) == 0 || v.all && len(shown) != len(listed) {
			ts.Fatalf("%s of %s has %d rows, and berth %s has %d", v.table, v.path, len(shown), v.list, len(listed))
		}
		for _, row := range listed {
			v.compare(ts, row, shown)
		}
	}
}

// compare finds the row of the page that matches a row of a list, and compares the two.
func (v *view) compare(ts *testscript.TestScript, row any, shown []any) {
	name := func(column string) string {
		if as, otherwise := v.as[column]; otherwise {
			return as
		}
		return column
	}
	key := textAt(row, name(v.key))
	columns, i := map[string]bool{}, -1
	for at, one := range shown {
		if textAt(one, v.key) == key {
			i = at
		}
		for column := range one.(map[string]any) {
			columns[column] = true
		}
	}
	if i < 0 {
		ts.Fatalf("%s of %s has no %s, which berth %s has", v.table, v.path, key, v.list)
	}
	compared := 0
	for column := range columns {
		if as := name(column); as != "" && has(row, as) {
			compared++
			if got, want := textAt(shown[i], column), textAt(row, as); got != want {
				ts.Fatalf("%s of %s: %s has the %s %q, and in berth %s the %s %q", v.table, v.path, key, column, got,
					v.list, as, want)
			}
		}
	}
	const least = 3 // rows with nothing to compare would always agree
	if compared < least {
		ts.Fatalf("%s of %s and berth %s have only %d columns of %s in common", v.table, v.path, v.list, compared, key)
	}
}

// has tells whether an object has a field, which may be nested: use.free.
func has(row any, field string) bool {
	first, rest, deeper := strings.Cut(field, ".")
	value, ok := row.(map[string]any)[first]
	return ok && (!deeper || has(value, rest))
}

// textAt is a field of an object, which may be nested. An empty value is an empty text.
func textAt(row any, field string) string {
	first, rest, deeper := strings.Cut(field, ".")
	value := row.(map[string]any)[first]
	switch v := value.(type) {
	case nil:
		return ""
	case map[string]any:
		if deeper {
			return textAt(v, rest)
		}
		if len(v) == 0 {
			return ""
		}
	case []any:
		if len(v) == 0 {
			return ""
		}
	}
	return fmt.Sprint(value)
}
