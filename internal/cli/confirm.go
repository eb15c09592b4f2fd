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
func YesFlag(yes *bool) FlagRow { return Flag(yes, "yes", "do not ask for confirmation").Short("y") }

// LoseMACFlag is the flag of commands that connect containers again.
func LoseMACFlag(lose *bool) FlagRow {
	return Flag(lose, "lose-mac", "accept that containers lose their configured MAC (Docker Engine 25.0 to 29.2)")
}

// Confirm asks a question on the terminal. It returns an error unless the answer is yes; without a terminal that is
// wrong usage.
func (r *Run) Confirm(question string) error {
	in, ok := r.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return r.Usagef("This command needs confirmation: %s Run it again with --yes", question)
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
