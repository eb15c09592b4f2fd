package berth_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// The style of users' pages. No existing tool checks it: vale counts words and sentences, but knows neither notYet
// nor the terms of concepts.md; markdownlint checks only the form of Markdown.

const (
	longestSentence = 35    // words
	longestPage     = 700   // words, code blocks not counted
	allPages        = 25000 // words of all users' pages together, once notYet is empty
)

// notYet are the pages that have not been rewritten. A page here that passes fails the test: remove it.
var notYet = []string{}

// plainWords are words that pages do not use outside code, each with the words to use instead.
var plainWords = []struct {
	not *regexp.Regexp
	but string
}{
	{wholeWord(`anew`), "again, recreated"},
	{wholeWord(`away`), "unreachable, gone"},
	{wholeWord(`besides?`), "next to, also"},
	{wholeWord(`(?:come|comes|came) to blows`), "conflict"},
	{wholeWord(`(?:give|gives|given|gave|giving)(?: (?:it|them|that|this))? free`), "releases"},
	{wholeWord(`goes`), "works, is sent, is written"},
	{wholeWord(`lends?|lent|lending`), "leases, is leased"},
	{wholeWord(`(?:put|puts|putting)(?: (?:it|them|that|this|all))? right`), "repairs"},
	{wholeWord(`says`), "reports, prints, returns"},
	{wholeWord(`tells|told`), "reports, prints, returns"},
	// A clause used as a noun. A question may begin like this.
	{wholeWord(`what (?:was|is) (?:\w+ly )?\w+ed\b[^?]*$`), "the noun: what was reserved = a reservation"},
	{wholeWord(`who has (?:it|them|one|an?|the)\b[^?]*$`), "the noun: who has it = its holder"},
}

func wholeWord(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + pattern + `)(?:\b|$)`)
}

// plainExceptions are places where a word of plainWords is right: `page: words around it`.
var plainExceptions = []string{}

// concepts are the terms that pages use without explaining them. concepts.md defines each, in bold or in a heading.
var concepts = []string{
	"edge", "elastic address", "engine", "exclusion", "gateway", "host", "lease", "network", "owner", "pool", "prefix",
	"reservation", "space", "store", "subnet", "witness",
}

// notForUsers are pages of docs that are not checked, because they are generated.
var notForUsers = []string{"docs/commands.md", "docs/metrics-list.md"}

// userPages are README.md and docs/*.md, by their paths.
func userPages(t *testing.T) map[string]string {
	t.Helper()
	all := pages(t)
	for page := range all {
		if page == "CONTRIBUTING.md" || strings.HasPrefix(page, "docs/dev/") || slices.Contains(notForUsers, page) {
			delete(all, page)
		}
	}
	return all
}

var (
	codeSpan    = regexp.MustCompile("(?s)``.+?``|`[^`]+`")
	image       = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	htmlPart    = regexp.MustCompile(`(?s)<!--.*?-->|</?[a-z][^>]*>`)
	listItem    = regexp.MustCompile(`^(?:[-*+]|\d+[.)]) +`)
	tableRule   = regexp.MustCompile(`^\|[\s:|-]+\|$`)
	sentenceEnd = regexp.MustCompile(`[.!?][)"'*]*\s+`)
	notAnEnd    = regexp.MustCompile(`(?:\be\.g|\bi\.e|\betc|\bvs)\.\s+$`)
)

// words counts what a person reads as words: fields with a letter or a digit.
func words(text string) (n int) {
	for _, field := range strings.Fields(text) {
		if strings.IndexFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0 {
			n++
		}
	}
	return n
}

// readWords counts the words of a page that a person reads: those outside code and comments.
func readWords(page string) int { return words(htmlPart.ReplaceAllString(prose(page), "")) }

// plain is the prose of a page as a person reads it: a link is its text, a piece of code is one word.
func plain(page string) string {
	text := htmlPart.ReplaceAllString(image.ReplaceAllString(codeSpan.ReplaceAllString(prose(page), "`code1`"), ""), "")
	return linkText.ReplaceAllString(text, "$1")
}

// passages are the parts of a page that hold sentences: paragraphs, headings, list items, table cells.
func passages(page string) (all []string) {
	open := false
	for line := range strings.Lines(plain(page)) {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), ">"))
		switch {
		case line == "" || tableRule.MatchString(line):
			open = false
		case strings.HasPrefix(line, "|"):
			all, open = append(all, strings.Split(strings.Trim(line, "|"), "|")...), false
		case strings.HasPrefix(line, "#"):
			all, open = append(all, line), false
		case open && !listItem.MatchString(line):
			all[len(all)-1] += " " + line
		default:
			all, open = append(all, listItem.ReplaceAllString(line, "")), true
		}
	}
	return all
}

// sentences are the sentences of a page, in order.
func sentences(page string) (all []string) {
	for _, passage := range passages(page) {
		from := 0
		for _, end := range sentenceEnd.FindAllStringIndex(passage, -1) {
			if notAnEnd.MatchString(passage[:end[1]]) {
				continue
			}
			all, from = append(all, strings.TrimSpace(passage[from:end[1]])), end[1]
		}
		if rest := strings.TrimSpace(passage[from:]); rest != "" {
			all = append(all, rest)
		}
	}
	return all
}

// unplain lists the faults of a page. It notes in used which of plainExceptions applied.
func unplain(page, text string, used map[string]bool) (problems []string) {
	if n := readWords(text); n > longestPage {
		problems = append(problems, fmt.Sprintf("%d words, at most %d", n, longestPage))
	}
	for _, sentence := range sentences(text) {
		if n := words(sentence); n > longestSentence {
			problems = append(problems, fmt.Sprintf("a sentence of %d words, at most %d: %s", n, longestSentence, sentence))
		}
		for _, word := range plainWords {
			found := word.not.FindString(sentence)
			if found != "" && !plainExcepted(page, sentence, found, used) {
				problems = append(problems, fmt.Sprintf("%q, better %s: %s", found, word.but, sentence))
			}
		}
	}
	return problems
}

// plainExcepted reports whether plainExceptions has the word as the sentence uses it.
func plainExcepted(page, sentence, word string, used map[string]bool) bool {
	for _, exception := range plainExceptions {
		of, part, _ := strings.Cut(exception, ": ")
		if of == page && strings.Contains(part, word) && strings.Contains(sentence, part) {
			used[exception] = true
			return true
		}
	}
	return false
}

// TestDocsPlain: users' pages are short, in short sentences, in the words of the field.
func TestDocsPlain(t *testing.T) {
	all, used, total := userPages(t), map[string]bool{}, 0
	for page, text := range all {
		total += readWords(text)
		problems := unplain(page, text, used)
		if slices.Contains(notYet, page) {
			if len(problems) == 0 {
				t.Errorf("%s passes: remove it from notYet", page)
			}
			continue
		}
		for _, problem := range problems {
			t.Errorf("%s: %s", page, problem)
		}
	}
	for _, page := range notYet {
		if _, there := all[page]; !there {
			t.Errorf("notYet has %s, which is no page: remove it", page)
		}
	}
	for _, exception := range plainExceptions {
		if !used[exception] {
			t.Errorf("no page needs this exception any more: %s", exception)
		}
	}
	if len(notYet) == 0 && total > allPages {
		t.Errorf("the users' pages have %d words, at most %d", total, allPages)
	}
}

// TestDocsConcepts: concepts.md defines the terms that pages use.
func TestDocsConcepts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("docs", "concepts.md"))
	if os.IsNotExist(err) {
		t.Skip("docs/concepts.md is not written yet")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, term := range concepts {
		defined := regexp.MustCompile(`(?im)\*\*(?:an? )?` + term + `s?\*\*|^#+ .*\b` + term + `(?:s|es)?\b`)
		if !defined.Match(text) {
			t.Errorf("docs/concepts.md does not define %q in bold or in a heading", term)
		}
	}
}

// TestDocsUnplain: the check finds each kind of fault, and none in code.
func TestDocsUnplain(t *testing.T) {
	long := strings.Repeat("word ", longestSentence)
	for _, c := range []struct{ text, problem string }{
		{"Berth leases an address. It is short.", ""},
		{long + "end.", "a sentence of 36 words"},
		{long + "\nend.", "a sentence of 36 words"},
		{long + "[one `berth ls`](x.md)", "a sentence of 37 words"},
		{"- " + long + "\n- end", ""},
		{"| a | " + long + " |\n|---|---|\n| b | " + long + " |", ""},
		{long + "`berth x`.\nNext.", "a sentence of 36 words"},
		{strings.Repeat("A word. ", longestPage/2+1), "702 words, at most 700"},
		{"```\n" + strings.Repeat(long, 30) + "\n```", ""},
		{"The host is away.", `"away"`},
		{"Berth gives it\nfree.", `"gives it free"`},
		{"The error Says so.", `"Says"`},
		{"`berth` prints `says`.\n\n```\nsays\n```", ""},
		{"What was reserved is released.", `"What was reserved`},
		{"Who has it is told.", `"Who has it`},
		{"## Who has it?", ""},
		{"It is an essay.", ""},
	} {
		problems := strings.Join(unplain("docs/x.md", c.text, map[string]bool{}), "\n")
		if c.problem == "" && problems != "" || !strings.Contains(problems, c.problem) {
			t.Errorf("%.60q: %q, want %q", c.text, problems, c.problem)
		}
	}
}
