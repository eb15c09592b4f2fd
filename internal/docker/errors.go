package docker

import "fmt"

// refusal is a sentence for a person and the kind of error (of the room ipam) for errors.Is; the kind is not spoken.
type refusal struct {
	kind error
	text string
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.kind }

func refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}
