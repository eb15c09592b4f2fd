package ipam

import (
	"strings"
	"unicode"
)

// setTag sets a tag of a network. A nil value removes it.
func (n *Network) setTag(key string, value *string) error {
	if err := CheckName("tag", key); err != nil {
		return err
	}
	if value == nil {
		delete(n.Tags, key)
		return nil
	}
	if err := checkText("the tag "+key, *value); err != nil {
		return err
	}
	if n.Tags == nil {
		n.Tags = map[string]string{}
	}
	n.Tags[key] = *value
	return nil
}

// maxTags is how many tags a network keeps.
const maxTags = 128

// checkTags refuses too many tags.
func (n *Network) checkTags() error {
	if len(n.Tags) <= maxTags {
		return nil
	}
	return Refuse(ErrInvalid, "network %s would have %d tags; it can have at most %d", n.Name, len(n.Tags), maxTags)
}

// checkText refuses a text that is not one printable line of at most MaxText bytes.
func checkText(what, text string) error {
	if len(text) > MaxText {
		return Refuse(ErrInvalid, "%s has %d bytes; at most %d are allowed", what, len(text), MaxText)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Refuse(ErrInvalid, "%s has characters that cannot be printed; write it on one line", what)
	}
	return nil
}
