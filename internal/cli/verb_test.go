package cli

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// A command takes the arguments in its usage line, and completes no others.
func TestArgsOfUse(t *testing.T) {
	for use, counts := range map[string]string{
		"status": "0", "ls [NETWORK]": "0 1", "rm NETWORK RANGE": "2", "take NETWORK --owner OWNER": "1",
		"ip OWNER [--network NETWORK]": "1",
		"env [NETWORK] OWNER":          "1 2", "mend (--dry-run|--yes)": "0", "add NETWORK CIDR|/BITS": "2",
	} {
		cmd := Verb{Use: use}.Command(&Program{})
		var taken []string
		for n, args := range [][]string{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}} {
			err := cmd.Args(cmd, args)
			if err == nil {
				taken = append(taken, string(rune('0'+n)))
			} else if !IsUsage(err) {
				t.Errorf("%s with %d arguments: %v is not wrong usage", use, n, err)
			}
		}
		if got := strings.Join(taken, " "); got != counts {
			t.Errorf("%s takes %s arguments, want %s", use, got, counts)
		}
	}
}

type row struct{ Name, Extra string }

// A conditional column appears only for its lists. -q prints the identifying column, wherever it is.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		rows   []row
		format string
		want   string
	}{
		{[]row{{"a", ""}}, "table", "FIRST  NAME\nx      a\n"},
		{[]row{{"a", ""}, {"b", "e"}}, "table", "FIRST  NAME  EXTRA\nx      a     -\nx      b     e\n"},
		{[]row{{"a", ""}}, "quiet", "a\n"},
	} {
		var b strings.Builder
		show := &Table[row]{W: &b, format: c.format, columns: []Column[row]{
			Col("FIRST", func(*row) string { return "x" }),
			Col("NAME", func(r *row) string { return r.Name }).Names(),
			Col("EXTRA", func(r *row) string { return r.Extra }).IfAny(),
		}}
		if err := show.Rows(c.rows); err != nil || b.String() != c.want {
			t.Errorf("%v as %s: %v\n%swant\n%s", c.rows, c.format, err, &b, c.want)
		}
	}
}

type inner struct{ State string }

type fielded struct {
	Name, Network, Space string
	NetworkID            ipam.ID
	GatewayNote          string
	Hosts                []string
	Held                 bool
	Address              netip.Addr
	Since                time.Time
	Inner                *inner
}

// A column or a key given as text reads the field of that name. A name that no row has is a programming error.
func TestFields(t *testing.T) {
	id := ipam.NewID()
	row := fielded{Name: "web", Network: "net1", Space: "lab", NetworkID: id, Hosts: []string{"a", "b"}, Held: true,
		Address: netip.MustParseAddr("10.0.0.1"), Inner: &inner{"lost"}}
	for text, want := range map[string]string{
		"Name": "NAME=web", "GATEWAY=Address": "GATEWAY=10.0.0.1", "GatewayNote": "GATEWAY NOTE=", "Hosts": "HOSTS=a,b",
		"IN USE=Held": "IN USE=yes", "Since": "SINCE=", "Inner.State,marked": "STATE=lost", "Address,ref": "=net1/10.0.0.1",
	} {
		c := Field[fielded](text)
		if got := c.title + "=" + c.value(&row); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	if c := Field[fielded]("Inner.State,wide,most=3"); c.value(&fielded{}) != "" || !c.wide || c.most != 3 {
		t.Errorf("%+v has not its options, or a value that is not there", c)
	}
	for text, want := range map[string]string{"network": "net1 " + id.String() + " " + id.Short(), "space": "lab",
		"owner=Name,Inner.State": "web lost", "host=Hosts": "a b"} {
		if got := strings.Join(Keys[fielded](text)[0].values(&row), " "); got != want {
			t.Errorf("the key %s has %q, want %q", text, got, want)
		}
	}
	for _, wrong := range []string{"Nothing", "Inner.Nothing", "Name,narrow"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a column %q is taken", wrong)
				}
			}()
			Field[fielded](wrong)
		}()
	}
}

// A flag sets its variable, whose value is the default. Without the flag a pointer stays nil. An empty value is
// refused if one is needed.
func TestFlagRows(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "plain none false"},
		{[]string{"--word", "w", "--note", "", "--on"}, "w \"\" true"},
		{[]string{"--note=n", "--on=false"}, "plain \"n\" false"},
		{[]string{"--word", ""}, "--word is empty"},
	} {
		word, on := "plain", false
		var note *string
		var got string
		cmd := Verb{Use: "try", Flags: Flags{Flag(&word, "word",
			"").Filled(), Flag(&note, "note", "").Default("x"),
			Flag(&on, "on", "")}, Run: func(*Run) error {
			said := "none"
			if note != nil {
				said = strconv.Quote(*note)
			}
			got = fmt.Sprint(word, " ", said, " ", on)
			return nil
		}}.Command(&Program{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{}, c.args...))
		if err := cmd.Execute(); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}
