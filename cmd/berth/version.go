package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"berth/internal/admin"

	"github.com/spf13/cobra"
)

// versions is what `berth version` shows.
type versions struct {
	Client clientVersion  `json:"client"`
	Daemon *admin.Version `json:"daemon"`          // nil: none answers
	Socket string         `json:"socket"`          // of the daemon
	Error  string         `json:"error,omitempty"` // why none answers
}

type clientVersion struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// versionTime bounds the wait for the daemon: the client's own version is worth showing at once.
const versionTime = 5 * time.Second

func (p *program) versionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "version", Short: "Show the versions of this command and of the daemon", Args: noArgs,
		Long:    "Shows the version of this command and, when a daemon answers, the daemon's and where its state is.",
		Example: "  berth version\n  berth version --format json\n  berth version --format '{{.Client.Version}}'"}
	cmd.Flags().StringVar(&format, "format", "table", "`form` of the output: table, json or a Go template")
	completes(cmd, "format", words("table", "json"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		show, err := newTable(p.out, cmd, output{format: format}, nil, func(v *versions) string { return v.Client.Version })
		if err != nil {
			return err
		}
		show.line = versionText
		return show.rows([]versions{p.versions(cmd.Context())})
	}
	return cmd
}

func (p *program) versions(ctx context.Context) versions {
	v := versions{Client: clientVersion{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}}
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	client, err := p.find(ctx)
	if err != nil {
		v.Error = oneLine(err)
		return v
	}
	defer client.Close()
	v.Socket = client.Socket()
	daemon, err := client.Version(ctx)
	if err != nil {
		v.Error = oneLine(err)
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
	if kind == storeEtcd {
		kind = "etcd, and of its own bolt"
	}
	return text + fmt.Sprintf("Daemon:  %s on host %s, process %d, since %s\nSocket:  %s\nState:   %s (%s %s)",
		d.Version, d.Host, d.PID, localTime(d.Started), v.Socket, d.State, kind, d.StoreID)
}
