package cli

import (
	"fmt"
	"io"
	"strings"
)

// Page is text about one thing, written line by line.
type Page struct{ text strings.Builder }

// Line writes one; what names and notes bring along does not break it.
func (pg *Page) Line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text != "" {
		text = strings.TrimRight(Printable(text), " ")
	}
	pg.text.WriteString(text + "\n")
}

// Entry writes what has a value.
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
