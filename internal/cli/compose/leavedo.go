package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy"
	"berth/internal/deploy/single"
	"berth/internal/docker"
	"berth/internal/docker/leave"
	"berth/internal/ipam"
)

// leaveNotes are kept in a file from before anything is touched until all is done.
type leaveNotes struct {
	What     string        `json:"what"`
	Project  string        `json:"project,omitempty"` // Compose's; empty: a network was named
	Begun    time.Time     `json:"begun"`
	Keep     bool          `json:"keep,omitempty"`
	Networks []*leave.Note `json:"networks"`

	file string
}

// noteFile is where the notes about a network or project are kept.
func (f *leaveFlags) noteFile(p *cli.Program, what string) (string, error) {
	dir := f.state
	if dir == "" {
		home := p.Env("XDG_STATE_HOME")
		if home == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("where to note down what is under way is not known; say it with --note-dir: %w", err)
			}
			home = filepath.Join(user, ".local", "state")
		}
		dir = filepath.Join(home, "berth")
	}
	if strings.ContainsAny(what, `/\`) || what == "" {
		return "", fmt.Errorf("%q is no name of a Docker network or Compose project", what)
	}
	return filepath.Join(dir, "leave-"+what+".json"), nil
}

// readNotes are those of a run that was cut off; nil: there are none.
func readNotes(file string) (*leaveNotes, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	notes := &leaveNotes{}
	if err := json.Unmarshal(text, notes); err != nil {
		return nil, fmt.Errorf("%s, the note of a run that was cut off, cannot be read: %w", file, err)
	}
	return notes, nil
}

// keep writes them down, so that they are on disk before anything is touched.
func (n *leaveNotes) keep() error {
	if err := os.MkdirAll(filepath.Dir(n.file), 0o700); err != nil {
		return err
	}
	return cli.WriteWith(cli.PrivateMode, io.Discard, n.file, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(n)
	})
}

func (n *leaveNotes) running() (count int) {
	for _, note := range n.Networks {
		for i := range note.Seats {
			if note.Seats[i].Running {
				count++
			}
		}
	}
	return count
}

// wouldLeave says what would be done.
func (r *leaveRun) wouldLeave() error {
	for _, note := range r.notes.Networks {
		lines := []string{fmt.Sprintf("%s would be recreated with the engine's own IPAM driver", note.Network)}
		for i := range note.Seats {
			seat := &note.Seats[i]
			with := "any address, because Berth knows of none"
			if len(seat.Addresses) > 0 {
				with = deploy.Listed(seat.Addresses, " and ")
			}
			lines = append(lines, fmt.Sprintf("%s would be put back on it with %s", seat.Container, with))
		}
		if err := r.p.Say(lines...); err != nil {
			return err
		}
	}
	return nil
}

// leave does what is noted, and ends the note when all is done.
func (r *leaveRun) leave(ctx context.Context) error {
	override, err := r.override(ctx)
	if err != nil {
		return err
	}
	if err := r.notes.keep(); err != nil {
		return fmt.Errorf("nothing was changed, because what is to be done could not be noted down: %w", err)
	}
	say := func(format string, args ...any) {
		fmt.Fprintln(r.p.Out, cli.Printable(fmt.Sprintf(format, args...)))
	}
	for _, note := range r.notes.Networks {
		if err := r.hand.Leave(ctx, note, say); err != nil {
			return err
		}
	}
	if override.text != nil {
		err := cli.WriteText(cli.OpenMode, r.p.Out, override.file, override.text)
		if err != nil {
			return err
		}
		say("%s gives the services these addresses from now on: keep it behind the Compose files", override.file)
	}
	r.endPlans(context.WithoutCancel(ctx), say)
	if override.project != nil {
		for _, line := range override.advice(single.Answering(context.WithoutCancel(ctx))) {
			say("%s", line)
		}
	}
	return os.Remove(r.notes.file)
}

// endPlans removes from Berth what was planned for the networks. What is in use by somebody else stays, and that is
// said.
func (r *leaveRun) endPlans(ctx context.Context, say func(string, ...any)) {
	if r.notes.Keep || r.flags.keep {
		return
	}
	var ids []string
	for _, note := range r.notes.Networks {
		ids = append(ids, note.Planned...)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		n, err := r.c.Network(ctx, id)
		var problem *api.Problem
		if errors.As(err, &problem) && problem.Code == api.CodeNotFound {
			continue // it ended with its last Docker network
		}
		if err == nil {
			_, err = r.c.Edit(ctx, client.EditOptions{}, &ipam.RemoveNetwork{Network: id, Force: true})
		}
		if err != nil {
			r.p.Warnf("the plan of the network %s stays in Berth: %s", n.Name, cli.OneLine(err))
			continue
		}
		say("the plan of the network %s is removed from Berth", n.Name)
	}
}

// override is the file that a project is to keep.
type override struct {
	file     string
	text     []byte
	project  *deploy.Project // nil: there is no file to keep
	replicas []string        // of services that have several
}

// override works out the file that a project is to keep, before anything is touched.
func (r *leaveRun) override(ctx context.Context) (out override, err error) {
	if r.notes.Project == "" {
		return out, nil
	}
	engine, err := docker.Open(r.flags.engine.Host)
	if err != nil {
		return out, err
	}
	defer engine.Close()
	p, err := engine.Project(ctx, r.notes.Project)
	if errors.Is(err, ipam.ErrNotFound) {
		return out, nil // it has no container whose address is to be kept
	}
	if err != nil {
		return out, err
	}
	r.p.SayOfCompose()
	project, err := deploy.Load(ctx, deploy.Source{Project: p.Name, Files: p.Files, Directory: p.Directory,
		EnvFiles: p.EnvFiles, Environment: os.Environ()})
	if err != nil {
		return out, fmt.Errorf("nothing was changed: %w", err)
	}
	out.file = r.flags.output
	for _, file := range p.Files {
		if ours, err := deploy.IsOverride(file); out.file == "" && err == nil && ours {
			out.file = file
		}
	}
	if out.file == "" {
		out.file = filepath.Join(filepath.Dir(project.Files()[0]), overrideName)
		if err := overwrites(out.file); err != nil {
			return out, err
		}
	}
	networks, replicas := leftNetworks(r.notes.Networks)
	if out.text, err = project.Left(networks, !strings.HasPrefix(p.Version, "1.")); err != nil {
		return out, err
	}
	out.project, out.replicas = project, replicas
	return out, nil
}

// advice says what people must do themselves, with the compose command that they have.
func (o *override) advice(command string) (lines []string) {
	project := o.project
	files := ""
	for _, one := range project.Files() {
		files += " -f " + shellWord(one)
	}
	for _, key := range project.SaysDriver() {
		lines = append(lines, fmt.Sprintf("take driver and options out of the ipam of the network %s in %s", key,
			strings.Join(project.Files(), ", ")))
	}
	lines = append(lines, fmt.Sprintf("the project is brought up from now on with: %s -p %s%s -f %s up -d",
		command, project.Name(), files, shellWord(o.file)))
	if len(o.replicas) > 0 {
		lines = append(lines, fmt.Sprintf("a file cannot say the addresses of several replicas: %s keep theirs until "+
			"Compose recreates them", strings.Join(o.replicas, ", ")))
	}
	return lines
}

// leftNetworks are the networks with what the only container of each service has, and the services that have several.
func leftNetworks(notes []*leave.Note) (all []deploy.LeftNetwork, replicas []string) {
	highest := map[string]int{}
	for _, note := range notes {
		for i := range note.Seats {
			highest[note.Seats[i].Service] = max(highest[note.Seats[i].Service], note.Seats[i].Number)
		}
	}
	for _, note := range notes {
		n := deploy.LeftNetwork{Key: note.Key, Addresses: map[string][]netip.Addr{}, MACs: map[string]string{}}
		for _, c := range note.New.IPAM.Config {
			n.Subnets = append(n.Subnets, deploy.LeftSubnet{CIDR: c.Subnet, Gateway: c.Gateway})
		}
		for i := range note.Seats {
			seat := &note.Seats[i]
			switch {
			case seat.Service == "":
			case highest[seat.Service] > 1:
				replicas = append(replicas, seat.Container)
			default:
				n.Addresses[seat.Service] = seat.Addresses
				if len(seat.Settings.MacAddress) > 0 {
					n.MACs[seat.Service] = seat.Settings.MacAddress.String()
				}
			}
		}
		all = append(all, n)
	}
	slices.Sort(replicas)
	return all, slices.Compact(replicas)
}
