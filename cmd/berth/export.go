package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"berth/internal/admin"
	"berth/internal/plan"

	"github.com/spf13/cobra"
)

const exportHelp = `Writes the plan as one YAML document: all networks that are planned, with their subnets, pools, exclusions,
reservations and the addresses that were taken for what is no container. What Docker has in use is no part
of it; berth backup keeps that. berth import reads it back, there or in another Berth.

--csv writes one kind of thing as a table for a spreadsheet, with the names of columns that NetBox has:
networks, subnets, pools, exclusions, reservations or addresses. A cell that a spreadsheet would take for a
formula has a ' before it, which berth import takes away.

A FILE (-o) is written whole or not at all, and replaces one that is there.`

func (p *program) exportCommand() *cobra.Command {
	var file, noun, network string
	cmd := &cobra.Command{Use: "export", Short: "Write the plan as a document or as tables", Long: exportHelp, Args: noArgs,
		Example: `  berth export
  berth export -o plan.yaml
  berth export --network net1
  berth export --csv subnets -o subnets.csv`}
	f := cmd.Flags()
	f.StringVarP(&file, "output", "o", "", "write to `FILE` instead of standard output")
	f.StringVar(&noun, "csv", "", "a table of one `NOUN`: "+strings.Join(plan.Nouns, ", "))
	f.StringVar(&network, "network", "", "only the network `NETWORK`, by name or id, planned or not")
	completes(cmd, "csv", words(plan.Nouns...))
	completes(cmd, "network", p.completeNetworks)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		writer := func(w io.Writer) (plan.Writer, error) { return plan.NewYAML(w), nil }
		if noun != "" {
			writer = func(w io.Writer) (plan.Writer, error) { return plan.NewCSV(w, noun) }
		}
		if _, err := writer(io.Discard); err != nil {
			return usage(cmd, fmt.Errorf("--csv is %q and must be one of %s", noun, strings.Join(plan.Nouns, ", ")))
		}
		return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
			return writeWhole(p.out, file, func(w io.Writer) error { return export(ctx, c, network, w, writer) })
		})
	}
	return cmd
}

// export writes the networks as they come.
func export(ctx context.Context, c *admin.Client, network string, to io.Writer, writer func(io.Writer) (plan.Writer, error)) error {
	w, err := writer(to)
	if err != nil {
		return err
	}
	for n, err := range c.Export(ctx, network) {
		if err != nil {
			return err
		}
		if err := w.Write(&n); err != nil {
			return err
		}
	}
	return w.Close()
}

// writeWhole has fn write a file, which gets its name when it is whole and on the disk; whatever goes wrong, what was there
// stays as it was. Without a name it writes to out.
func writeWhole(out io.Writer, name string, fn func(io.Writer) error) error {
	if name == "" || name == "-" {
		return fn(out)
	}
	mode := fs.FileMode(0o666) // less what the umask takes away
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is there and is not a regular file; give another name", name)
	default:
		mode = info.Mode().Perm()
	}
	temp, err := os.OpenFile(fmt.Sprintf("%s/.%s.%d.part", filepath.Dir(name), filepath.Base(name), os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // after the renaming there is nothing of that name
	err = fn(temp)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}
