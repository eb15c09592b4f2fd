// Package shorten cuts values from outside before they are shown. A value from a caller or receiver cannot fill a log,
// an answer or a list. Berth's own sentences stay whole.
//
// To cuts a single value. Text cuts the values in a sentence that leaves Berth: a refusal of the driver or the admin
// API, or a finding of the witness. Values cuts only the values, for log lines, which may be long.
package shorten

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Most is the length to which a value is cut, in characters.
const Most = 200

// MostText is the length to which a sentence is cut, in characters. It may have many short values.
const MostText = 2000

// Text cuts each value of a sentence to Most, and the whole sentence to MostText.
func Text(text string) string { return To(Values(text), MostText) }

// To cuts a text to a number of characters, and marks the cut with an ellipsis.
func To(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for at := range text {
		if n == most {
			return text[:at] + "…"
		}
		n++
	}
	return text
}

// Values cuts each value of a sentence to Most. A value is a word, or the text between quotation marks.
func Values(text string) string {
	if len(text) <= Most {
		return text
	}
	var b strings.Builder
	for text != "" {
		n := valueEnd(text)
		b.WriteString(To(text[:n], Most))
		text = text[n:]
	}
	return b.String()
}

// valueEnd returns the end of the value at the start of a text. A blank counts as a value. A quotation mark ends a
// word, because the quoted text that follows is a value of its own, quoted as Go does it.
func valueEnd(text string) int {
	if text[0] == '"' {
		return quotedEnd(text)
	}
	for at, c := range text {
		switch {
		case at == 0 && unicode.IsSpace(c):
			return utf8.RuneLen(c)
		case at > 0 && (c == '"' || unicode.IsSpace(c)):
			return at
		}
	}
	return len(text)
}

// quotedEnd returns the end of a quoted text: its closing mark, or the end of the whole text if there is none.
func quotedEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
