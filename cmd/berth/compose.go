package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"berth/internal/admin"
	"berth/internal/deploy"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

const composeHelp = `Reserves addresses for the services of a Compose project on planned networks, and writes an override file that gives each
service its own, on any engine: ipv4_address, ipv6_address and mac_address. It goes beside the Compose file:

  docker compose -f compose.yaml -f berth.override.yaml up -d

The owner is project/service/1, or the container_name where a service has one. What it has reserved stays; so run again, it
writes the same file. Of a service with several replicas each has addresses reserved, and nothing is fixed, because all of them
share what the file says.

A network is Berth's where its IPAM driver is called berth, also with a path and a tag, or what --ipam-driver says; its option
network names the planned one. --network says by hand which one it is, for external networks too. --release gives back all that
is reserved for the project, and writes nothing. What is not said here is found as Compose finds it.`

// composeFlags are the flags of compose.
type composeFlags struct {
	source  deploy.Source
	mapping deploy.Mapping
	output  string
	dryRun  bool
	release bool
}

func (p *program) composeCommand() *cobra.Command {
	var flags composeFlags
	cmd := &cobra.Command{Use: "compose", Short: "Reserve addresses for a Compose project, and write its override file", Long: composeHelp,
		Args: noArgs,
		Example: `  berth compose -f compose.yaml -o berth.override.yaml
  berth compose -f compose.yaml --network lan=front --dry-run
  berth compose -f compose.yaml -f more.yaml -p shop --scale web=3 -o berth.override.yaml
  berth compose -f compose.yaml --release`}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.source.Files, "file", "f", nil, "a Compose `FILE` (repeatable; none: as Compose finds it)")
	f.StringVarP(&flags.output, "output", "o", "", "write to `FILE` instead of standard output")
	f.StringVarP(&flags.source.Project, "project-name", "p", "", "the `NAME` of the project")
	f.StringVar(&flags.source.Directory, "project-directory", "", "the `directory` of the project (that of the first file)")
	f.StringArrayVar(&flags.source.EnvFiles, "env-file", nil, "a `FILE` of variables for the Compose file (repeatable; .env)")
	f.StringArrayVar(&flags.source.Profiles, "profile", nil, "also the services of the profile `NAME` (repeatable)")
	f.StringToIntVar(&flags.source.Scale, "scale", nil, "`SERVICE=N`: a service has N replicas, whatever the file says (repeatable)")
	f.StringVar(&flags.mapping.Driver, "ipam-driver", "", "the `NAME` of the IPAM driver that is Berth, if it is not called berth")
	f.StringToStringVar(&flags.mapping.Networks, "network", nil, "`NETWORK=PLANNED`: a network of the Compose file is on that planned one (repeatable)")
	f.BoolVar(&flags.dryRun, "dry-run", false, "show what would be reserved or released, a line for each event, and change and write nothing")
	f.BoolVar(&flags.release, "release", false, "release all that is reserved for the project's owners")
	for _, flag := range []string{"file", "output"} {
		if err := cmd.MarkFlagFilename(flag, "yaml", "yml"); err != nil {
			panic(err) // the command has no such flag: a slip above
		}
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if flags.release && cmd.Flags().Changed("output") {
			return usage(cmd, errors.New("--release writes no file; leave -o out"))
		}
		return p.compose(cmd, flags)
	}
	return cmd
}

// compose does what the flags say.
func (p *program) compose(cmd *cobra.Command, flags composeFlags) error {
	if err := overwrites(flags.output); err != nil {
		return err
	}
	logrus.SetOutput(p.err) // of the library, which has no other
	logrus.SetFormatter(composeSays{})
	flags.source.Environment = os.Environ()
	project, err := deploy.Load(cmd.Context(), flags.source)
	if err != nil {
		return err
	}
	return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
		if flags.release {
			return p.composeRelease(ctx, c, flags.dryRun, project)
		}
		return p.composeOverride(ctx, c, flags, project)
	})
}

// composeRelease releases what the project's owners have, and says which addresses that were.
func (p *program) composeRelease(ctx context.Context, c *admin.Client, dryRun bool, project *deploy.Project) error {
	out, err := editInSteps(ctx, c, dryRun, project.Release(), func(int) string { return "" })
	switch {
	case err != nil:
		return err
	case dryRun:
		return p.say(changeLines(out.Changes))
	}
	return p.say(sayAddresses(out))
}

// composeOverride reserves what the services want, and writes what they have.
func (p *program) composeOverride(ctx context.Context, c *admin.Client, flags composeFlags, project *deploy.Project) error {
	networks, err := c.Networks(ctx, "")
	if err != nil {
		return err
	}
	plan, err := project.Plan(flags.mapping, networks)
	if err != nil {
		return err
	}
	out, err := editInSteps(ctx, c, flags.dryRun, plan.Edits(), plan.Where)
	if err != nil {
		return err
	}
	if flags.dryRun {
		return p.say(changeLines(out.Changes))
	}
	if err := plan.Grant(out.Results); err != nil {
		return err
	}
	text, err := plan.Override()
	if err != nil {
		return err
	}
	return writeWhole(p.out, flags.output, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// editInSteps makes edits, more than one transaction takes in several: those that were made before a refusal are made again
// without a change when the command is run again. A refusal ends with what where says of the edit.
func editInSteps(ctx context.Context, c *admin.Client, dryRun bool, edits []ipam.Edit, where func(edit int) string) (all ipam.Outcome, err error) {
	for done := 0; done < len(edits); {
		step := edits[done:min(done+ipam.MaxEdits, len(edits))]
		out, err := c.Edit(ctx, admin.EditOptions{DryRun: dryRun}, step...)
		if err != nil {
			return all, located(err, done, where)
		}
		all.Results = append(all.Results, out.Results...)
		all.Changes = append(all.Changes, out.Changes...)
		done += len(step)
	}
	return all, nil
}

// located says for which part of a file an edit was refused. Refusals begin with their code, so it comes last.
func located(err error, before int, where func(edit int) string) error {
	var refused *admin.Problem
	if !errors.As(err, &refused) {
		return err
	}
	edit := before
	if refused.Index != nil {
		edit += *refused.Index
	}
	if at := where(edit); at != "" {
		return fmt.Errorf("%w (%s)", err, at)
	}
	return err
}

// overwrites refuses to write over what a person wrote: the Compose file itself, above all.
func overwrites(file string) error {
	if file == "" || file == "-" {
		return nil
	}
	if _, err := os.Lstat(file); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ours, err := deploy.IsOverride(file)
	if err == nil && !ours {
		err = fmt.Errorf("%s is there, and `berth compose` did not write it; give another name with -o, or remove it", file)
	}
	return err
}

// say writes lines to standard output.
func (p *program) say(lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.out, line); err != nil {
			return err
		}
	}
	return nil
}

// composeSays writes what the library has to say about a Compose file as a line. That `version` is obsolete is left out: we
// write it for those who need it.
type composeSays struct{}

func (composeSays) Format(e *logrus.Entry) ([]byte, error) {
	if strings.Contains(e.Message, "`version` is obsolete") {
		return nil, nil
	}
	return []byte("berth: " + e.Message + "\n"), nil
}
