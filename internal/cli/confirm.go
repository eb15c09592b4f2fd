package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// YesFlag is the flag --yes of commands that ask.
func YesFlag(yes *bool) FlagRow { return Flag(yes, "yes", "do not ask").Short("y") }

// Confirm asks a question on the terminal. It returns an error unless the answer is yes; without a terminal that is
// wrong usage.
func (r *Run) Confirm(question string) error {
	in, ok := r.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return r.Usagef("standard input is no terminal, so nobody can answer; use --yes. "+
			"The question is: %s", question)
	}
	fmt.Fprintf(r.Stderr, "%s [y/N] ", Printable(question))
	line, err := bufio.NewReader(in).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil {
		fmt.Fprintln(r.Stderr)
	}
	return errors.New("nothing was changed")
}
