package daemon

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"berth/internal/admin/api"
	"berth/internal/cli"
)

// versions is the output of `berth version`.
type versions struct {
	Client clientVersion `json:"client"`
	Daemon *api.Version  `json:"daemon"`          // nil if no daemon answers
	Socket string        `json:"socket"`          // of the daemon
	Error  string        `json:"error,omitempty"` // why no daemon answers
}

type clientVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionTime bounds the wait for the daemon, so that the client's own version appears soon.
const versionTime = 5 * time.Second

// VersionCommand is `berth version`.
func VersionCommand() cli.Row {
	format := "table"
	return cli.Verb{Use: "version", Short: "Show the versions of this command and of the daemon",
		Long: "Shows the version of this command and, if a daemon answers, the daemon's version and where its " +
			"state is.",
		Example: "  berth version\n  berth version --format json\n  berth version --format '{{.Client.Version}}'",
		Flags: cli.Flags{cli.Flag(&format, "format",
			"`form` of the output: table, json, yaml or a Go template").
			Words("table", "json", "yaml")},
		Run: func(r *cli.Run) error {
			show, err := cli.NewObject[versions](r, format)
			if err != nil {
				return err
			}
			v := askVersions(r)
			return show.Object(&v, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, versionText(&v))
				return err
			})
		}}
}

// askVersions returns the client's version and, if a daemon answers, the daemon's.
func askVersions(r *cli.Run) versions {
	v := versions{Client: clientVersion{r.Build, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
	ctx, cancel := context.WithTimeout(r, versionTime)
	defer cancel()
	r = r.With(ctx)
	if err := r.Ask(); err != nil {
		v.Error = cli.OneLine(err)
		return v
	}
	defer r.Close()
	v.Socket = r.Socket()
	daemon, err := r.Version(r)
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
		return text + "Daemon:  no daemon answers: " + v.Error
	}
	d := v.Daemon
	kind := d.Store
	if kind == "etcd" {
		kind = "shared store: etcd; own store: bolt"
	}
	return text + fmt.Sprintf("Daemon:  %s on host %s, process %d, since %s\nSocket:  %s\nState:   %s (%s %s)",
		d.Version, d.Host, d.PID, cli.LocalTime(d.Started), v.Socket, d.State, kind, d.StoreID)
}
