package daemon

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"berth/internal/admin/api"
	"berth/internal/cli"

	"github.com/spf13/cobra"
)

// versions is what `berth version` shows.
type versions struct {
	Client clientVersion `json:"client"`
	Daemon *api.Version  `json:"daemon"`          // nil: none answers
	Socket string        `json:"socket"`          // of the daemon
	Error  string        `json:"error,omitempty"` // why none answers
}

type clientVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionTime bounds the wait for the daemon: the client's own version is worth showing at once.
const versionTime = 5 * time.Second

// VersionCommand is `berth version`.
func VersionCommand(p *cli.Program) cli.Row {
	format := "table"
	return cli.Verb{Use: "version", Short: "Show the versions of this command and of the daemon",
		Long:    "Shows the version of this command and, when a daemon answers, the daemon's and where its state is.",
		Example: "  berth version\n  berth version --format json\n  berth version --format '{{.Client.Version}}'",
		Flags: cli.Flags{cli.Flag(&format, "format",
			"`form` of the output: table, json, yaml or a Go template").
			Words("table", "json", "yaml")},
		Run: func(cmd *cobra.Command, _ []string) error {
			show, err := cli.NewObject[versions](p.Out, cmd, format)
			if err != nil {
				return err
			}
			v := askVersions(cmd.Context(), p)
			return cli.ShowObject(show, &v, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, versionText(&v))
				return err
			})
		}}
}

// askVersions asks the daemon for its own, where one answers.
func askVersions(ctx context.Context, p *cli.Program) versions {
	v := versions{Client: clientVersion{p.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	c, err := p.Find(ctx)
	if err != nil {
		v.Error = cli.OneLine(err)
		return v
	}
	defer c.Close()
	v.Socket = c.Socket()
	daemon, err := c.Version(ctx)
	if err != nil {
		v.Error = cli.OneLine(err)
		return v
	}
	v.Daemon = &daemon
	return v
}

func versionText(v *versions) string {
	text := fmt.Sprintf("Command: %s (%s, %s)\n", v.Client.Version, v.Client.Go, v.Client.Platform)
	if v.Daemon == nil {
		return text + "Daemon:  none answers: " + v.Error
	}
	d := v.Daemon
	kind := d.Store
	if kind == "etcd" {
		kind = "etcd, and of its own bolt"
	}
	return text + fmt.Sprintf("Daemon:  %s on host %s, process %d, since %s\nSocket:  %s\nState:   %s (%s %s)",
		d.Version, d.Host, d.PID, cli.LocalTime(d.Started), v.Socket, d.State, kind, d.StoreID)
}
