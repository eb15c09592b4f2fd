package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// editing holds the flags of everything that changes the plan.
type editing struct {
	dryRun bool
	format string
}

func (e *editing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&e.dryRun, "dry-run", false, "show what would change, a line for each event, and change nothing")
	f.StringVar(&e.format, "format", "text", "`form` of the output: text, json (the whole outcome, as the admin API has it), or a Go template")
	completes(cmd, "format", words("text", "json"))
}

// editor makes edits and shows what they came to.
type editor struct {
	p      *program
	cmd    *cobra.Command
	dryRun bool
	show   *table[ipam.Outcome]
	client *admin.Client
}

// editor reads the format and finds the daemon. The caller closes it.
func (p *program) editor(cmd *cobra.Command, flags editing) (*editor, error) {
	show, err := newObject[ipam.Outcome](p.out, cmd, flags.format)
	if err != nil {
		return nil, err
	}
	client, err := p.find(cmd.Context())
	if err != nil {
		return nil, err
	}
	return &editor{p: p, cmd: cmd, dryRun: flags.dryRun, show: show, client: client}, nil
}

func (e *editor) close() { e.client.Close() }

// make makes the edits in one transaction. As text it shows what would change, or, when it has changed, what said says of it.
func (e *editor) make(said func(ipam.Outcome) []string, edits ...ipam.Edit) error {
	out, err := e.client.Edit(e.cmd.Context(), admin.EditOptions{DryRun: e.dryRun}, edits...)
	if err != nil {
		return err
	}
	return showObject(e.show, &out, func(w io.Writer) error {
		if e.dryRun {
			said = func(out ipam.Outcome) []string { return changeLines(out.Changes) }
		}
		for _, line := range said(out) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// edit is all of it for the verbs that make edits once.
func (p *program) edit(cmd *cobra.Command, flags editing, said func(ipam.Outcome) []string, edits ...ipam.Edit) error {
	e, err := p.editor(cmd, flags)
	if err != nil {
		return err
	}
	defer e.close()
	return e.make(said, edits...)
}

// echo says a word of the command line again, as docker does.
func echo(word string) func(ipam.Outcome) []string {
	return func(ipam.Outcome) []string { return []string{word} }
}

// sayAddresses says the addresses that the edits came to, one a line.
func sayAddresses(out ipam.Outcome) []string {
	var lines []string
	for _, r := range out.Results {
		for _, a := range r.Addresses {
			lines = append(lines, a.String())
		}
	}
	return lines
}

// changeLines shows events of a dry run.
func changeLines(changes []ipam.Event) []string {
	if len(changes) == 0 {
		return []string{"nothing would change"}
	}
	lines := make([]string, len(changes))
	for i := range changes {
		lines[i] = changeLine(&changes[i])
	}
	return lines
}

// changeLine is an event of the plan for a person: what happens, in which network, to what, and what is before and after.
func changeLine(e *ipam.Event) string {
	var object []string
	if e.Network != "" {
		object = append(object, e.Network)
	}
	if e.Subnet.IsValid() {
		object = append(object, e.Subnet.String())
	}
	if e.Address.IsValid() {
		object = append(object, e.Address.String())
	}
	if e.Name != "" && e.Name != e.Network {
		object = append(object, e.Name)
	}
	if len(object) == 0 {
		object = []string{e.Space}
	}
	parts := []string{fmt.Sprintf("%-18s", e.Verb), fmt.Sprintf("%-24s", strings.Join(object, " ")), difference(e.Before, e.After)}
	if e.Detail != "" && !strings.Contains(parts[2], "="+e.Detail) {
		parts = append(parts, "("+e.Detail+")")
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return printable(strings.TrimRight(strings.Join(parts, "  "), " "))
}

// difference writes what was made as "name=lan", what was removed as "was name=lan", what was modified as "name=lan->lan2", and what
// was split as "was range=A-D, is range=A-B, range=C-D".
func difference(before, after json.RawMessage) string {
	was, is := objects(before), objects(after)
	switch {
	case len(was) == 1 && len(is) == 1 && before[0] == '{' && after[0] == '{':
		return modified(was[0], is[0])
	case len(was) == 0:
		return joinObjects(is)
	case len(is) == 0:
		return "was " + joinObjects(was)
	}
	return "was " + joinObjects(was) + ", is " + joinObjects(is)
}

// modified writes the fields of one object that became another; what is the same in both once.
func modified(was, is []field) string {
	var texts []string
	for _, f := range was {
		value := "none"
		if i := slices.IndexFunc(is, func(other field) bool { return other.name == f.name }); i >= 0 {
			value = is[i].value
		}
		if value != f.value {
			value = f.value + "->" + value
		}
		texts = append(texts, f.name+"="+value)
	}
	for _, f := range is {
		if !slices.ContainsFunc(was, func(other field) bool { return other.name == f.name }) {
			texts = append(texts, f.name+"=none->"+f.value)
		}
	}
	return strings.Join(texts, " ")
}

// field is one field of a JSON object, its value as a person would write it.
type field struct{ name, value string }

// objects reads a JSON object, or an array of them; none of what is absent.
func objects(raw json.RawMessage) (all [][]field) {
	var several []json.RawMessage
	if json.Unmarshal(raw, &several) != nil {
		several = []json.RawMessage{raw}
	}
	for _, one := range several {
		if f := fields(one); len(f) > 0 {
			all = append(all, f)
		}
	}
	return all
}

// fields reads a JSON object, in the order in which it is written.
func fields(raw json.RawMessage) (all []field) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return all
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return all
		}
		text := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil {
			text = cmp.Or(s, "none")
		} else if several := objects(value); value[0] == '[' && len(several) > 0 {
			text = "(" + joinObjects(several) + ")"
		}
		all = append(all, field{fmt.Sprint(name), text})
	}
	return all
}

func joinObjects(all [][]field) string {
	texts := make([]string, len(all))
	for i, object := range all {
		for _, f := range object {
			texts[i] += " " + f.name + "=" + f.value
		}
		texts[i] = strings.TrimPrefix(texts[i], " ")
	}
	return strings.Join(texts, ", ")
}

// takes holds a verb to its arguments, each by its name in the help.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage(cmd, fmt.Errorf("%s is missing: %s %s", names[len(args)], cmd.CommandPath(), strings.Join(names, " ")))
		}
		if len(args) > len(names) {
			return usage(cmd, fmt.Errorf("%q is one argument too many: %s %s", args[len(names)], cmd.CommandPath(), strings.Join(names, " ")))
		}
		for i, arg := range args {
			if strings.TrimSpace(arg) == "" { // a script's variable that is not set
				return usage(cmd, fmt.Errorf("%s is empty: %s %s", names[i], cmd.CommandPath(), strings.Join(names, " ")))
			}
		}
		return nil
	}
}

// notEmpty refuses flags that are given without a value, where no value would mean something else.
func notEmpty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return usage(cmd, fmt.Errorf("--%s is empty; give it a value, or leave it out", name))
		}
	}
	return nil
}

// mayTake allows one argument.
func mayTake(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage(cmd, fmt.Errorf("%q is one argument too many: %s [%s]", args[1], cmd.CommandPath(), name))
		}
		return nil
	}
}

// first is the argument of a verb that may take one.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// changed refuses a verb that modifies without a flag that says what.
func changed(cmd *cobra.Command, flags ...string) error {
	if slices.ContainsFunc(flags, cmd.Flags().Changed) {
		return nil
	}
	return usage(cmd, fmt.Errorf("nothing is to be changed; say what with --%s", strings.Join(flags, ", --")))
}

// ownerFlag adds --owner to what needs one; whose is what the verb does with it.
func ownerFlag(cmd *cobra.Command, owner *string, whose string) {
	cmd.Flags().StringVar(owner, "owner", "", "`OWNER` "+whose+": a name, project/service/1, or a MAC")
}

func needsOwner(cmd *cobra.Command, owner string) error {
	if owner == "" {
		return usage(cmd, errors.New("--owner is missing: it says whose the addresses are"))
	}
	return nil
}
