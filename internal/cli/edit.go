package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/advice"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// EditFlags holds the flags of all commands that change the plan.
type EditFlags struct {
	DryRun bool
	Format string
}

// DryRunFlag is --dry-run of a command that changes something else than the plan.
func DryRunFlag(dryRun *bool) FlagRow {
	return Flag(dryRun, "dry-run", "show what would be done, and change nothing")
}

// flags are these flags.
func (e *EditFlags) flags() Flags {
	return Flags{Flag(&e.DryRun, "dry-run",
		"show what would change, a line for each event, and change nothing"),
		FormatFlag(&e.Format, "the whole outcome, as the admin API returns it")}
}

// Change is a command that changes the plan: by Edit or Edits in one transaction, by Each and PerArg in one per
// argument.
type Change struct {
	Verb
	// Edit makes the edit from flags and arguments. Its error is wrong usage.
	Edit func(args []string) (ipam.Edit, error)
	// Edits replaces Edit: it makes several.
	Edits func(args []string) ([]ipam.Edit, error)
	// Each replaces Edit: it makes an edit for each place that the arguments name (Places). Its error is wrong usage.
	Each func(place Place) (ipam.Edit, error)
	// PerArg replaces Edit: it makes an edit for each argument. Its error is wrong usage.
	PerArg func(arg string) (ipam.Edit, error)
	// Make replaces Edit: it makes its edits itself.
	Make func(*Editor) error
	// Then is called after success; it may be nil.
	Then func(*Run)
	// Noted prints notes on the outcome, also of a dry run; it may be nil.
	Noted func(*Run, ipam.Outcome)
	// Said returns the output after success; nil: the last argument.
	Said func(ipam.Outcome) []string
}

// Command returns the command. The caller may add flags.
func (c Change) Command(p *Program) *cobra.Command {
	var flags EditFlags
	c.Flags = append(c.Flags, flags.flags()...)
	c.Run = func(r *Run) error {
		made := c.Make
		if c.Edit != nil || c.Edits != nil { // wrong usage is reported before the daemon is searched for
			edits, err := c.edits(r.Args)
			if err != nil {
				return Usage(r.Cmd, err)
			}
			made = func(e *Editor) error { return e.noting(c.Noted).Make(c.said(e.Args), edits...) }
		} else if made == nil {
			made = c.each
		}
		show, err := NewObject[ipam.Outcome](r, flags.Format)
		if err == nil {
			err = r.Ask()
		}
		if err == nil {
			err = made(&Editor{Run: r, EditFlags: flags, show: show})
		}
		if err == nil && c.Then != nil {
			c.Then(r)
		}
		return err
	}
	return c.Verb.Command(p)
}

// said returns the output of the edits.
func (c Change) said(args []string) func(ipam.Outcome) []string {
	if c.Said == nil {
		return Echo(args[len(args)-1])
	}
	return c.Said
}

func (c Change) edits(args []string) ([]ipam.Edit, error) {
	if c.Edits != nil {
		return c.Edits(args)
	}
	edit, err := c.Edit(args)
	return []ipam.Edit{edit}, err
}

// each makes one edit per place, each in its own transaction, and continues after a refusal, like docker.
func (c Change) each(e *Editor) (err error) {
	edited := c.Each
	var places []Place
	if c.PerArg != nil {
		edited = func(place Place) (ipam.Edit, error) { return c.PerArg(place.Thing) }
		for _, arg := range e.Args {
			places = append(places, Place{Thing: arg})
		}
	} else if places, err = e.Places(); err != nil {
		return err
	}
	var failed []error
	for _, place := range places {
		edit, err := edited(place)
		if err != nil {
			return Usage(e.Cmd, err)
		}
		failed = append(failed, e.Make(Echo(place.Thing), edit))
	}
	return errors.Join(failed...)
}

// Each calls fn for each argument, also after a failure, as docker does.
func Each(args []string, fn func(arg string) error) error {
	var failed []error
	for _, arg := range args {
		failed = append(failed, fn(arg))
	}
	return errors.Join(failed...)
}

// Editor is a run that makes edits and shows the outcome.
type Editor struct {
	*Run
	EditFlags
	show  *Table[ipam.Outcome]
	noted func(*Run, ipam.Outcome) // prints notes on an outcome; nil: none
}

// noting sets what prints notes on the outcome.
func (e *Editor) noting(noted func(*Run, ipam.Outcome)) *Editor {
	e.noted = noted
	return e
}

// Make makes the edits in one transaction. As text it shows what a dry run would change or, after the change, what said
// returns.
func (e *Editor) Make(said func(ipam.Outcome) []string, edits ...ipam.Edit) error {
	out, err := e.Edit(e, client.EditOptions{DryRun: e.DryRun}, edits...)
	if err != nil {
		return err
	}
	for _, r := range out.Results {
		for _, warning := range r.Warnings {
			e.Note("%s", warning)
		}
	}
	if e.noted != nil {
		e.noted(e.Run, out)
	}
	return e.show.Object(&out, func(w io.Writer) error {
		if e.DryRun {
			said = func(out ipam.Outcome) []string { return ChangeLines(out.Changes) }
		}
		for _, line := range said(out) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// Echo repeats an argument as the output, like docker.
func Echo(word string) func(ipam.Outcome) []string {
	return func(ipam.Outcome) []string { return []string{word} }
}

// SayAddresses returns the addresses that the edits chose, one per line.
func SayAddresses(out ipam.Outcome) []string {
	var lines []string
	for _, r := range out.Results {
		for _, a := range r.Addresses {
			lines = append(lines, a.String())
		}
	}
	return lines
}

// EditInSteps makes any number of edits, in as many transactions as they need. After a refusal, earlier transactions
// stay. If the command runs again, their edits change nothing. where names the source of an edit, such as a line, and a
// refusal ends with it.
func (r *Run) EditInSteps(opt client.EditOptions, edits []ipam.Edit, where func(edit int) string) (all ipam.Outcome,
	err error) {
	most := ipam.MaxEdits
	if opt.DryRun {
		most = ipam.MaxTried // a later step depends on the steps before, which a dry run does not keep
	}
	for done := 0; done < len(edits); {
		step := edits[done:min(done+most, len(edits))]
		out, err := r.Edit(r, opt, step...)
		if err != nil {
			return all, located(err, done, where)
		}
		all.Results = append(all.Results, out.Results...)
		all.Changes = append(all.Changes, out.Changes...)
		for _, refused := range out.Refused {
			refused.Index += done
			all.Refused = append(all.Refused, refused)
		}
		done += len(step)
	}
	return all, nil
}

// located adds the part of a file that the edit is from to the end of a refusal.
func located(err error, before int, where func(edit int) string) error {
	var refused *api.Problem
	if !errors.As(err, &refused) {
		return err
	}
	edit := before
	if refused.Index != nil {
		edit += *refused.Index
	}
	if at := where(edit); at != "" {
		return &locatedError{err, at}
	}
	return err
}

// locatedError is a refusal with its advice, followed by the part of a file.
type locatedError struct {
	refused error
	at      string
}

func (e *locatedError) Error() string { return fmt.Sprintf("%s (%s)", advice.Text(e.refused), e.at) }

func (e *locatedError) Unwrap() error { return e.refused }

// ChangeLines describes the events of a dry run, one per line.
func ChangeLines(changes []ipam.Event) []string {
	if len(changes) == 0 {
		return []string{"nothing would change"}
	}
	lines := make([]string, len(changes))
	for i := range changes {
		e := &changes[i]
		lines[i] = Printable(strings.TrimRight(fmt.Sprintf("%-18s  %-24s  %s", e.Verb, e.Object(), e.Changed()), " "))
	}
	return lines
}
