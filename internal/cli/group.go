package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// group is a command that only holds others.
type group struct {
	use, short string
	rows       []Row
}

// Group returns a command that only holds others, a row each.
func Group(use, short string, rows ...Row) Row { return group{use, short, rows} }

// Command implements Row.
func (g group) Command(p *Program) *cobra.Command {
	use, plural := g.use, g.use+"s"
	switch {
	case use == "orphans":
		plural = use
	case strings.HasSuffix(use, "s"):
		plural = use + "es"
	}
	cmd := &cobra.Command{Use: use, Aliases: []string{plural}, Short: g.short}
	asGroup(cmd)
	for _, row := range g.rows {
		cmd.AddCommand(row.Command(p))
	}
	return cmd
}

// asGroup makes a command without a verb show its help, and refuse an unknown verb.
func asGroup(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("%q is not a command of %s", args[0], cmd.CommandPath())
		if near := nearTo(cmd, args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %s?", strings.Join(near, " or "))
		} else if cmd.HasParent() {
			text += "; its commands are " + strings.Join(verbsOf(cmd), ", ")
		}
		return Usage(cmd, errors.New(text))
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.DisableFlagsInUseLine = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// verbsOf returns the names of a group's commands.
func verbsOf(cmd *cobra.Command) (names []string) {
	for _, verb := range cmd.Commands() {
		names = append(names, verb.Name())
	}
	return names
}

// habits maps words from other programs to Berth's commands.
var habits = map[string]string{
	"ls": "`berth lease ls`", "list": "`berth lease ls`", "ps": "`berth lease ls`", "ips": "`berth lease ls`",
	"net": "`berth network`", "log": "`berth events`", "logs": "`berth events`", "history": "`berth events`",
	"search": "`berth find`", "grep": "`berth find`", "show": "`berth inspect`", "describe": "`berth inspect`",
	"info": "`berth status`", "health": "`berth status`", "daemon": "`berth serve`", "start": "`berth serve`",
	"ui": "`berth page`", "web": "`berth page`", "reserve": "`berth reservation add`",
	"exclude": "`berth exclusion add`", "next": "`berth network free NETWORK --next`", "dump": "`berth plan export`",
	"lint": "`berth check`", "doctor": "`berth check`", "free": "`berth network free`",
	"top":    "`berth network ls --sort use --watch`",
	"export": "`berth plan export`", "import": "`berth plan import`", "diff": "`berth plan diff`",
	"apply": "`berth plan apply`", "backup": "`berth state backup`", "restore": "`berth state restore`",
	"fsck": "`berth state check`", "store": "`berth state`", "account": "`berth elastic account`",
	"space": "`berth subnet ls --sort space`", "env": "`berth ip --env`",
}

// nearTo returns the commands that an unknown word may mean. For a word of three letters or less, the library suggests
// most short names. So only names with this beginning, or with this word in SuggestFor, count.
func nearTo(cmd *cobra.Command, word string) []string {
	if meant, is := habits[strings.ToLower(word)]; is && !cmd.HasParent() {
		return []string{meant}
	}
	all := cmd.SuggestionsFor(word)
	if len(word) <= 3 {
		all = slices.DeleteFunc(all, func(name string) bool {
			return !strings.HasPrefix(name, strings.ToLower(word)) && !suggested(cmd, name, word)
		})
	}
	return all
}

// suggested reports whether a command has the word in its SuggestFor.
func suggested(cmd *cobra.Command, name, word string) bool {
	return slices.ContainsFunc(cmd.Commands(), func(verb *cobra.Command) bool {
		return verb.Name() == name && slices.Contains(verb.SuggestFor, word)
	})
}

// noVerb refuses --help of an unknown verb, for which the library would show the group's help.
func noVerb(root *cobra.Command, args []string) error {
	if !slices.Contains(args, "--help") && !slices.Contains(args, "-h") {
		return nil
	}
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.Args == nil || !cmd.HasSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil
	}
	return cmd.Args(cmd, rest[:1])
}

// completionCommand adds cobra's command for shell completion, without PowerShell.
func completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd("")
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		asGroup(cmd)
		for _, shell := range cmd.Commands() {
			if shell.Name() == "powershell" {
				cmd.RemoveCommand(shell)
			}
		}
	}
}
