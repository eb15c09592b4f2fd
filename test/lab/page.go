package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Page is the text of a page of the tree, by its path from the top.
func Page(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	return string(text), err
}

// Lines are the shell lines of a page below a heading: those of its sh blocks, with backslash continuations joined
// and without comments.
func Lines(page, below string) ([]string, error) {
	text, err := Page(page)
	if err != nil {
		return nil, err
	}
	_, section, found := strings.Cut("\n"+text, "\n"+below+"\n")
	if !found {
		return nil, fmt.Errorf("%s has no heading %q", page, below)
	}
	if !strings.HasPrefix(below, "# ") {
		section, _, _ = strings.Cut(section, "\n## ")
	}
	lines := ShellLines(section)
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s shows no lines below %q", page, below)
	}
	return lines, nil
}

// ShellLines are the lines of the sh blocks of a text.
func ShellLines(text string) (lines []string) {
	for _, block := range strings.Split("\n"+text, "\n```sh\n")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		lines = append(lines, LinesOf(block)...)
	}
	return lines
}

// LinesOf are the shell lines of a block, with backslash continuations joined and without comments.
func LinesOf(block string) (lines []string) {
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		line, _, _ = strings.Cut(line, "  #")
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Block is the first block of a page in a language.
func Block(page, language string) (string, error) {
	text, err := Page(page)
	if err != nil {
		return "", err
	}
	_, block, found := strings.Cut(text, "\n```"+language+"\n")
	block, _, ended := strings.Cut(block, "\n```\n")
	if !found || !ended {
		return "", fmt.Errorf("%s has no block of %s", page, language)
	}
	return block + "\n", nil
}

// Shown is a block of a page, unchanged, and its language.
type Shown struct{ Language, Text string }

// Shows are the blocks of a page between a heading and the next one.
func Shows(page, below string) (all []Shown, err error) {
	text, err := Page(page)
	if err != nil {
		return nil, err
	}
	inside, here := false, false
	for line := range strings.Lines(text) {
		switch mark := strings.TrimSpace(line); {
		case strings.HasPrefix(mark, "```"):
			if inside = !inside; inside && here {
				all = append(all, Shown{Language: strings.TrimPrefix(mark, "```")})
			}
		case inside && here:
			all[len(all)-1].Text += line
		case !inside && strings.HasPrefix(line, "#"):
			here = mark == below
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s shows nothing below %q", page, below)
	}
	return all, nil
}
