package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/template"
)

// Things shows objects of several kinds, as `docker inspect` does: as one JSON array, or each by a template.
type Things struct {
	w      io.Writer
	format string
	each   *template.Template
}

// NewThings parses the format. An invalid template is wrong usage. Its fields are not checked, because they depend on
// the objects.
func NewThings(r *Run, format string) (*Things, error) {
	t := &Things{w: r.Out, format: format}
	if format == "json" || format == "yaml" {
		return t, nil
	}
	each, err := parseTemplate(format)
	if err != nil {
		return nil, r.Usagef("--format is neither a known word nor a valid template: %w", err)
	}
	t.each = each
	return t, nil
}

// All writes all objects.
func (t *Things) All(things []any) error {
	if things == nil {
		things = []any{} // JSON gets an empty list, not null
	}
	switch {
	case t.each == nil && t.format == "yaml":
		return writeYAML(t.w, things)
	case t.each == nil:
		e := json.NewEncoder(t.w)
		e.SetIndent("", "    ")
		e.SetEscapeHTML(false)
		return e.Encode(things)
	}
	for _, thing := range things {
		if err := t.each.Execute(t.w, thing); err != nil {
			return fmt.Errorf("--format: %w", err)
		}
		if _, err := fmt.Fprintln(t.w); err != nil {
			return err
		}
	}
	return nil
}
