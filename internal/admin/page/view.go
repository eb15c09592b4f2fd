package page

import "slices"

// shown is the content of a view.
type shown struct {
	Title  string
	Status int    // 0: 200
	Here   string // the path of its menu entry
	Lead   string // a sentence below the title
	Blocks []block
	File   string // the name of a downloaded file, without extension

	Network string // the name of the only network in the view; empty: any change can make the view stale
	Asks    bool   // it is a form and has no other forms
	To      string // a redirection to this relative link
	Still   bool   // it is not refreshed, because that costs too much or because the user types in it
	mark    string // the mark up to which it is current; empty: unknown
}

// block is one part of a view. One of Table, Map, Ask and Note is set. JSON and CSV contain only the tables.
type block struct {
	Table *table
	Map   *drawing
	Ask   *asking
	Fill  *filled
	Note  string
	Alert bool // the Note describes a problem

	Offers []offered // links to forms, for users who may make changes
}

// asking is a form that requests another view. It changes nothing.
type asking struct {
	Action string // a relative link
	Label  string // the label of the field
	Name   string
	Value  string
	Hint   string
	Button string
	Hidden []hidden
}

// hidden is a parameter that a form repeats.
type hidden struct{ Name, Value string }

// table appends a table.
func (s *shown) table(t *table) *table {
	s.Blocks = append(s.Blocks, block{Table: t})
	return t
}

// note appends a sentence.
func (s *shown) note(text string) { s.Blocks = append(s.Blocks, block{Note: text}) }

// alert appends a sentence about a problem.
func (s *shown) alert(text string) { s.Blocks = append(s.Blocks, block{Note: text, Alert: true}) }

// mapBefore inserts a map before the table with a name.
func (s *shown) mapBefore(name string, d *drawing) {
	for i := range s.Blocks {
		if t := s.Blocks[i].Table; t != nil && t.Name == name {
			s.Blocks = slices.Insert(s.Blocks, i, block{Map: d})
			return
		}
	}
}
