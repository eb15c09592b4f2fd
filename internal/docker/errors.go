package docker

import "fmt"

// refusal is a sentence for a person, with a kind of error of package ipam for errors.Is. The text does not include the
// kind.
type refusal struct {
	kind error
	text string
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.kind }

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}
