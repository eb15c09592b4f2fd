package page

import "testing"

// TestEmptyColumns: a column in which no row has anything is hidden, and one of ids; the others are not.
func TestEmptyColumns(t *testing.T) {
	list := &table{Columns: columns("name", "Name", "mac", "-MAC", "free", "#Free", "used", "Used", "network_id", "-Id")}
	list.add(cell{Value: "a", Text: "a"}, cell{}, cell{}, cell{Bar: &bar{}}, cell{Text: "1"})
	list.add(cell{}, cell{}, cell{Value: 1, Text: "1"}, cell{}, cell{})
	want := []string{"", ` class="least" hidden`, ` class="n"`, "", ` class="id least" hidden`}
	head, laid := list.Head(), list.Laid()
	for i := range want {
		if string(head[i].Attr) != want[i] {
			t.Errorf("the head of %s has %q and not %q", head[i].Name, head[i].Attr, want[i])
		}
		for _, cells := range laid {
			if string(cells[i].Attr) != want[i] {
				t.Errorf("a cell of %s has %q and not %q", head[i].Name, cells[i].Attr, want[i])
			}
		}
	}
}
