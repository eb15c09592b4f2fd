package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Confirm asks a question on the terminal. It returns an error unless the answer is yes; without a terminal that is
// wrong usage.
func (p *Program) Confirm(cmd *cobra.Command, question string) error {
	in, ok := p.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return Usage(cmd, fmt.Errorf("standard input is no terminal, so nobody can answer; use --yes. "+
			"The question is: %s", question))
	}
	fmt.Fprintf(p.Err, "%s [y/N] ", Printable(question))
	line, err := bufio.NewReader(in).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil {
		fmt.Fprintln(p.Err)
	}
	return errors.New("nothing was changed")
}
