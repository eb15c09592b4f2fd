package plan

import (
	"encoding/csv"
	"io"
	"slices"

	"berth/internal/ipam"
)

// csvWriter writes the table of one noun.
type csvWriter[T any] struct {
	*sheet[T]
	columns []column[T]
	w       *csv.Writer
	cells   []string
	begun   bool
}

// NewCSV returns a Writer for the table of one noun. It refuses an unknown noun.
func NewCSV(w io.Writer, noun string) (Writer, error) {
	of, err := tableOf(noun)
	if err != nil {
		return nil, err
	}
	return of.writer(w), nil
}

func (s *sheet[T]) writer(w io.Writer) Writer {
	columns := slices.DeleteFunc(s.parts(), func(c column[T]) bool { return c.get == nil })
	return &csvWriter[T]{sheet: s, columns: columns, w: csv.NewWriter(w)}
}

// Write implements Writer.
func (w *csvWriter[T]) Write(n *ipam.PlannedNetwork) error {
	if err := w.head(); err != nil {
		return err
	}
	rows := w.of(n)
	for i := range rows {
		if err := w.row(func(c *column[T]) string { return guarded(c.get(&rows[i])) }); err != nil {
			return err
		}
	}
	return nil
}

// Close implements Writer.
func (w *csvWriter[T]) Close() error {
	if err := w.head(); err != nil {
		return err
	}
	w.w.Flush()
	return w.w.Error()
}

func (w *csvWriter[T]) head() error {
	if w.begun {
		return nil
	}
	w.begun = true
	return w.row(func(c *column[T]) string { return c.names[0] })
}

func (w *csvWriter[T]) row(cell func(*column[T]) string) error {
	w.cells = w.cells[:0]
	for i := range w.columns {
		w.cells = append(w.cells, cell(&w.columns[i]))
	}
	return w.w.Write(w.cells)
}
