package cli

import (
	"fmt"
	"io"
	"strings"
)

// Page is text about one object, written line by line.
type Page struct{ text strings.Builder }

// Line writes one line. Line breaks in names and notes do not break it.
func (pg *Page) Line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text != "" {
		text = strings.TrimRight(Printable(text), " ")
	}
	pg.text.WriteString(text + "\n")
}

// Entry writes a name and its value, unless the value is empty.
func (pg *Page) Entry(name, value string) {
	if value != "" {
		pg.Line("  %-11s %s", name, value)
	}
}

// Show writes the page to w.
func (pg *Page) Show(w io.Writer) error {
	_, err := io.WriteString(w, pg.text.String())
	return err
}
