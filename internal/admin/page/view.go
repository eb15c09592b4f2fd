package page

import "slices"

// shown is what a view shows.
type shown struct {
	Title  string
	Status int    // 0: 200
	Here   string // the path of the entry of the menu that it is
	Lead   string // a sentence below the title
	Blocks []block
	File   string // the name of its file, without ending

	Network string // the name of the one network that it is about; empty: any change may make it old
	Asks    bool   // it is a form, and has no other ones
	To      string // it is not shown: this relative link is where to look
	Still   bool   // it is not kept fresh: it costs too much, or somebody writes in it
	mark    string // where it is up to date; empty: nobody knows
}

// block is one part of a view. One of Table, Map, Ask and Note is set. Tables are what JSON and CSV tell.
type block struct {
	Table *table
	Map   *drawing
	Ask   *asking
	Fill  *filled
	Note  string
	Alert bool // the Note says that something is wrong

	Offers []offered // links to forms, for those who may use them
}

// asking is a form with which a view asks for another one: nothing changes by it.
type asking struct {
	Action string // a relative link
	Label  string // what the field is
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

// alert appends a sentence of something that is wrong.
func (s *shown) alert(text string) { s.Blocks = append(s.Blocks, block{Note: text, Alert: true}) }

// mapBefore puts a map before the table of a name.
func (s *shown) mapBefore(name string, d *drawing) {
	for i := range s.Blocks {
		if t := s.Blocks[i].Table; t != nil && t.Name == name {
			s.Blocks = slices.Insert(s.Blocks, i, block{Map: d})
			return
		}
	}
}
