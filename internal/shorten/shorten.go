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

// Most is how much of a value is shown, in characters. Who sends it chooses how long it is, and a log or a list
// is not his to fill.
const Most = 200

// MostText is how much of a sentence is shown, in characters: of many words in it each may be short.
const MostText = 2000

// Text is a sentence in which each value is cut to Most, and all of it to MostText.
func Text(text string) string { return To(Values(text), MostText) }

// To is the beginning of a text, of so many characters at most, with a mark where something is left out.
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

// Values is a sentence in which each value is cut to Most: each word, and what stands in quotation marks.
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

// valueEnd is where the value ends with which a text begins. A blank is one by itself; quotation marks end a word, so
// that what is in them is one, as Go quotes it.
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

// quotedEnd is where what is in quotation marks ends: with the text, where nothing closes them.
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
