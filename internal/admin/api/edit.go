package api

import (
	"encoding/json"
	"strconv"

	"berth/internal/ipam"
)

// Edit is an edit with its operation. In JSON it is one flat object: {"op":"pool.add"} with the fields of the edit.
type Edit struct{ ipam.Edit }

// MarshalJSON implements json.Marshaler.
func (e Edit) MarshalJSON() ([]byte, error) {
	fields, err := json.Marshal(e.Edit)
	if err != nil {
		return nil, err
	}
	text := append([]byte(`{"op":`), strconv.Quote(e.Op())...)
	if len(fields) > len("{}") {
		text = append(text, ',')
	}
	return append(text, fields[1:]...), nil
}
