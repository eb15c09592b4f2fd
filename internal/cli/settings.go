package cli

import (
	"slices"
	"strings"

	"berth/internal/admin/api"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Settings returns the flags of a command with their current values and sources.
func (p *Program) Settings(cmd *cobra.Command) (all []api.Setting) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || !reads(cmd.Name(), f.Name) || isRemoteFlag(f.Name) {
			return
		}
		source := "default"
		switch {
		case f.Changed:
			source = "flag"
		case strings.TrimSpace(p.Env(variable(f.Name))) != "":
			source = "environment"
		}
		all = append(all, api.Setting{Name: f.Name, Value: f.Value.String(), Source: source})
	})
	return all
}

// Unknown returns the environment variables with Berth's prefix that no command reads.
func (p *Program) Unknown(root *cobra.Command) (names []string) {
	known := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				known[variable(f.Name)] = known[variable(f.Name)] || reads(cmd.Name(), f.Name)
			})
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	if p.Environ == nil {
		return nil
	}
	for _, one := range p.Environ() {
		name, value, _ := strings.Cut(one, "=")
		if strings.HasPrefix(name, "BERTH_") && strings.TrimSpace(value) != "" && !known[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
