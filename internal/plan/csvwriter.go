package plan

import (
	"encoding/csv"
	"io"

	"berth/internal/ipam"
)

// csvWriter writes the table of one noun.
type csvWriter[T any] struct {
	sheet[T]
	w     *csv.Writer
	cells []string
	begun bool
}

// NewCSV returns a Writer of the table of one noun; an unknown one is an error.
func NewCSV(w io.Writer, noun string) (Writer, error) {
	switch noun {
	case "networks":
		return newCSV(w, networkSheet), nil
	case "subnets":
		return newCSV(w, subnetSheet), nil
	case "pools":
		return newCSV(w, poolSheet), nil
	case "exclusions":
		return newCSV(w, exclusionSheet), nil
	case "reservations":
		return newCSV(w, reservationSheet), nil
	case "addresses":
		return newCSV(w, addressSheet), nil
	}
	return nil, unknownNoun(noun)
}

func newCSV[T any](w io.Writer, s sheet[T]) *csvWriter[T] {
	return &csvWriter[T]{sheet: s, w: csv.NewWriter(w)}
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
	return w.row(func(c *column[T]) string { return c.name })
}

func (w *csvWriter[T]) row(cell func(*column[T]) string) error {
	w.cells = w.cells[:0]
	for i := range w.columns {
		if c := &w.columns[i]; c.get != nil {
			w.cells = append(w.cells, cell(c))
		}
	}
	return w.w.Write(w.cells)
}
