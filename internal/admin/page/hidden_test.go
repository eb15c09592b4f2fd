package page

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestEmptyColumns: a column without any values is hidden, and so is one of ids. The others are shown.
func TestEmptyColumns(t *testing.T) {
	list := &table{Columns: columns("name", "Name", "mac", "-MAC", "free", "#Free", "used", "Used", "network_id", "-Id")}
	list.add(cell{Value: "a", Text: "a"}, cell{}, cell{}, cell{Bar: &bar{}}, cell{Text: "1"})
	list.add(cell{}, cell{}, cell{Value: 1, Text: "1"}, cell{}, cell{})
	want := []string{"", ` class="least" hidden`, ` class="n"`, "", ` class="id least" hidden`}
	head := list.Head()
	for i := range want {
		if string(head[i].Attr) != want[i] {
			t.Errorf("the head of %s has %q and not %q", head[i].Name, head[i].Attr, want[i])
		}
	}
	for _, texts := range [][]any{{"a", "", "", "", "1"}, {"", "", "1", "", ""}} {
		cells := fmt.Sprintf("<td"+strings.Join(want, ">%s</td><td")+">%s</td>", texts...)
		besides := regexp.MustCompile(`<svg.*</svg> | data-t="[^"]*"`)
		if got := besides.ReplaceAllString(string(list.Body()), ""); !strings.Contains(got, cells) {
			t.Errorf("no row is %s:\n%s", cells, got)
		}
	}
}

// TestTitles: in a stacked table each cell with a value has the title of its column, except the first, which names
// the row.
func TestTitles(t *testing.T) {
	list := &table{Columns: columns("network_id", "-Id", "name", "Name", "mac", "MAC", "free", "#Free")}
	list.add(cell{Text: "1"}, cell{Text: "a"}, cell{Text: "02:42:00:00:00:01"}, cell{})
	list.add(cell{Text: "2"}, cell{Text: "b"}, cell{}, cell{Text: "7"})
	for _, want := range []string{`hidden>1<`, `<td>a<`, `<td class="b" data-t="MAC">02:`, `<td class="n"></td>`,
		`<td class="n" data-t="Free">7<`} {
		if body := string(list.Body()); !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
}
