package cli

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

type fruit struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

var fruits = []fruit{{"fig", 3}, {"watermelon", 30}}

func show(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out Output
	cmd := &cobra.Command{Use: "ls"}
	p := &Program{Env: func(string) string { return "" }}
	out.Flags(p).add(p, cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	p.Out = &b
	columns := []Column[fruit]{Col("NAME", func(f *fruit) string { return f.Name }),
		Col("COLOUR", func(*fruit) string { return "" }),
		Col("INITIAL", func(f *fruit) string { return f.Name[:1] })}
	tab, err := NewTable(&Run{Program: p, Cmd: cmd}, out, columns)
	if err != nil {
		return "", err
	}
	err = tab.Rows(fruits)
	return b.String(), err
}

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "NAME        COLOUR  INITIAL\nfig         -       f\nwatermelon  -       w\n"},
		{[]string{"--format", "json"}, `[{"name":"fig","size":3},` + "\n" + ` {"name":"watermelon","size":30}]` + "\n"},
		{[]string{"-q"}, "fig\nwatermelon\n"},
		{[]string{"--format", `{{.Name}}\t{{.Size}}`}, "fig\t3\nwatermelon\t30\n"},
		{[]string{"--format", `table {{.Name}}\t{{.Size}}`}, "NAME        SIZE\nfig         3\nwatermelon  30\n"},
		{[]string{"--format", `table {{printf "%02d" .Size}}\t{{.Name}}`}, "03  fig\n30  watermelon\n"},
		{[]string{"--format", `{{json .}} {{upper .Name}} {{len .Name}}`}, `{"name":"fig","size":3} FIG 3` + "\n" +
			`{"name":"watermelon","size":30} WATERMELON 10` + "\n"},
	} {
		got, err := show(t, c.args...)
		if err != nil || got != c.want {
			t.Errorf("%q: %v\n%s\nwant\n%s", c.args, err, got, c.want)
		}
	}
}

func TestOutputRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--format={{":           "nor a valid template",
		"--format={{.Nome}}":    "the fields are Name, Size",
		"-q --format=json":      "give either --format or --quiet",
		"--format={{nofunc .}}": "nor a valid template",
	} {
		_, err := show(t, strings.SplitN(args, " ", 2)...)
		if strings.HasPrefix(args, "--format") {
			_, err = show(t, args)
		}
		if err == nil || !IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want wrong usage with %q", args, err, want)
		}
	}
}

// full is a disk without free space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// A failed write is an error in every format.
func TestOutputFails(t *testing.T) {
	columns := []Column[fruit]{Col("NAME", func(f *fruit) string { return f.Name }),
		Col("INITIAL", func(f *fruit) string { return f.Name[:1] })}
	for _, format := range []string{"table", "json", "{{.Name}}", `table {{.Name}}\t{{.Size}}`} {
		r := &Run{Program: &Program{Out: full{}}, Cmd: &cobra.Command{Use: "ls"}}
		tab, err := NewTable(r, Output{Format: format}, columns)
		if err != nil {
			t.Fatal(err)
		}
		if err := tab.Rows(fruits); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("--format %q onto a full disk: %v", format, err)
		}
	}
}

// Only on a terminal is a wrong or gone state coloured. The column keeps its width.
func TestStatesStandOut(t *testing.T) {
	columns := []Column[fruit]{Field[fruit]("STATE=Name,marked"),
		Col("SIZE", func(*fruit) string { return "1" })}
	rows := []fruit{{Name: "held"}, {Name: "removed"}, {Name: "replaced"}}
	for colour, want := range map[bool]string{
		false: "STATE     SIZE\nheld      1\nremoved   1\nreplaced  1\n",
		true:  "STATE     SIZE\nheld      1\n\x1b[31mremoved\x1b[0m   1\n\x1b[33mreplaced\x1b[0m  1\n",
	} {
		var b bytes.Buffer
		tab := PlainTable(&Program{Env: func(string) string { return "" }}, &b, columns, false)
		tab.colour = colour
		if err := tab.Rows(rows); err != nil || b.String() != want {
			t.Errorf("%v\n%q\nwant\n%q", err, b.String(), want)
		}
	}
}

// A cell stays in its column, whatever the container's name contains.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"": "-", "web": "web", "a\tb\nc": "a?b?c", "\x1b[31mred": "?[31mred",
		"größe": "größe"} {
		if got := Printable(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

// TestNoEscapes: text from others moves no cursor and sets no title, wherever the terminal shows it.
func TestNoEscapes(t *testing.T) {
	const hostile, want = "a\x1b]0;title\x07\u009b2J\u202eb", "a?]0;title??2J?b"
	var b bytes.Buffer
	p := New("test")
	p.Out, p.Stderr = &b, &b
	if err := p.Say(hostile); err != nil {
		t.Fatal(err)
	}
	p.Warn(hostile)
	fails := &cobra.Command{Use: "berth", SilenceErrors: true, SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error { return errors.New(hostile) }}
	p.Run(t.Context(), fails, []string{})
	line, err := composeSays{}.Format(&logrus.Entry{Message: hostile})
	if err != nil {
		t.Fatal(err)
	}
	b.Write(line)
	if got := b.String(); got != want+"\n"+strings.Repeat("berth: "+want+"\n", 3) {
		t.Errorf("the terminal gets %q", got)
	}
}

func TestOneLine(t *testing.T) {
	if got := OneLine(errors.New("one\ntwo\r\nthree")); got != "one; two; three" {
		t.Errorf("%q", got)
	}
}
