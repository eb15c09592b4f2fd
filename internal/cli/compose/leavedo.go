package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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

	"github.com/moby/moby/api/types/network"
)

// leaveNotes are in a file from before the first change until all is done.
type leaveNotes struct {
	What     string        `json:"what"`
	Project  string        `json:"project,omitempty"` // Compose's; empty if the argument was a network
	Begun    time.Time     `json:"begun"`
	Keep     bool          `json:"keep,omitempty"`
	Networks []*leave.Note `json:"networks"`

	file string
}

// noteFile returns the path of the notes about a network or project.
func (f *leaveFlags) noteFile(p *cli.Program, what string) (string, error) {
	dir := f.state
	if dir == "" {
		home := p.Env("XDG_STATE_HOME")
		if home == "" {
			user, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("cannot find a directory for the note of this run; name one with --note-dir: %w", err)
			}
			home = filepath.Join(user, ".local", "state")
		}
		dir = filepath.Join(home, "berth")
	}
	if strings.ContainsAny(what, `/\`) || what == "" {
		return "", fmt.Errorf("%q is not a name of a Docker network or Compose project", what)
	}
	return filepath.Join(dir, "leave-"+what+".json"), nil
}

// readNotes reads the notes of an interrupted run. It returns nil if there are none.
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
		return nil, fmt.Errorf("cannot read %s, the note of an interrupted run: %w", file, err)
	}
	return notes, nil
}

// keep writes the notes to disk. Call it before the first change.
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
		for i := range note.Endpoints {
			if note.Endpoints[i].Running {
				count++
			}
		}
	}
	return count
}

// question says all that a run will do, and asks for it.
func (r *leaveRun) question(o override, plans []leftPlan) string {
	text := fmt.Sprintf("This recreates %s and disconnects %s for some seconds.",
		cli.Counted(len(r.notes.Networks), "network"), cli.Counted(r.notes.running(), "running container"))
	if o.text != nil {
		text += fmt.Sprintf(" It writes %s.", o.file)
	}
	var end []string
	for _, p := range plans {
		if len(p.keepers) == 0 {
			end = append(end, p.name)
		} else {
			text += fmt.Sprintf(" The plan of %s stays in Berth: %s.", p.name, strings.Join(p.keepers, ", "))
		}
	}
	if len(end) > 0 {
		text += fmt.Sprintf(" It removes the plan of %s from Berth, with all reservations, unless somebody else uses it "+
			"(--keep keeps it).", strings.Join(end, ", "))
	}
	return text + " Go on?"
}

// leftPlan is a plan that a run removes from Berth, unless somebody keeps it.
type leftPlan struct {
	name    string
	keepers []string
}

// plans returns the plans that a run removes.
func (r *leaveRun) plans(ctx context.Context) (all []leftPlan) {
	for _, id := range r.planned() {
		if n, err := r.Network(ctx, id); err == nil {
			all = append(all, leftPlan{n.Name, r.keepers[id]})
		}
	}
	return all
}

// planned returns the ids of Berth's networks whose plans a run removes.
func (r *leaveRun) planned() (ids []string) {
	if r.flags.keep {
		return nil
	}
	return r.notes.planned()
}

func (n *leaveNotes) planned() (ids []string) {
	if n.Keep {
		return nil
	}
	for _, note := range n.Networks {
		ids = append(ids, note.Planned...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// wouldLeave prints what a run would do.
func (r *leaveRun) wouldLeave(o override, plans []leftPlan) error {
	for _, note := range r.notes.Networks {
		lines := []string{fmt.Sprintf("%s would be recreated with the engine's own IPAM driver", note.Network)}
		for i := range note.New.IPAM.Config {
			lines = append(lines, subnetLines(note.Network, &note.New.IPAM.Config[i])...)
		}
		for i := range note.Endpoints {
			endpoint := &note.Endpoints[i]
			with := "any address, because Berth has none on record"
			if len(endpoint.Addresses) > 0 {
				with = deploy.Listed(endpoint.Addresses, " and ")
			}
			lines = append(lines, fmt.Sprintf("%s would be connected to %s with %s", endpoint.Container, note.Network,
				with))
		}
		if err := r.Say(lines...); err != nil {
			return err
		}
	}
	var lines []string
	if o.text != nil {
		lines = append(lines, fmt.Sprintf("%s would be written, with the addresses of the services", o.file))
	}
	for _, p := range plans {
		if len(p.keepers) > 0 {
			lines = append(lines, fmt.Sprintf("the plan of the network %s would stay in Berth: %s", p.name,
				strings.Join(p.keepers, ", ")))
			continue
		}
		lines = append(lines, fmt.Sprintf("the plan of the network %s would be removed from Berth, with its reservations, "+
			"unless somebody else uses it", p.name))
	}
	return r.Say(lines...)
}

// subnetLines returns what a recreated network has, in the options of docker network create.
func subnetLines(name string, config *network.IPAMConfig) []string {
	first := fmt.Sprintf("%s would have --subnet %s", name, config.Subnet)
	if config.IPRange.IsValid() {
		first += fmt.Sprintf(" --ip-range %s", config.IPRange)
	}
	if config.Gateway.IsValid() {
		first += fmt.Sprintf(" --gateway %s", config.Gateway)
	}
	lines := []string{first}
	byAddress := func(a, b string) int { return config.AuxAddress[a].Compare(config.AuxAddress[b]) }
	for _, key := range slices.SortedFunc(maps.Keys(config.AuxAddress), byAddress) {
		lines = append(lines, fmt.Sprintf("%s would have --aux-address %s=%s", name, key, config.AuxAddress[key]))
	}
	return lines
}

// leave carries out the notes, and removes their file when all is done.
func (r *leaveRun) leave(override override) error {
	if err := r.notes.keep(); err != nil {
		return fmt.Errorf("nothing was changed, because the command cannot write its note: %w", err)
	}
	say := func(format string, args ...any) {
		fmt.Fprintln(r.Out, cli.Printable(fmt.Sprintf(format, args...)))
	}
	for _, note := range r.notes.Networks {
		if err := r.connector.Leave(r, note, say); err != nil {
			return err
		}
	}
	if override.text != nil {
		err := cli.WriteText(cli.OpenMode, r.Out, override.file, override.text)
		if err != nil {
			return err
		}
		say("%s has the addresses of the services: keep this file", override.file)
	}
	r.endPlans(context.WithoutCancel(r), say)
	if override.project != nil {
		for _, line := range override.advice(single.Answering(context.WithoutCancel(r), override.version)) {
			say("%s", line)
		}
	}
	return os.Remove(r.notes.file)
}

// endPlans removes the plans of the networks from Berth. A plan that is in use by somebody else stays, with a warning.
func (r *leaveRun) endPlans(ctx context.Context, say func(string, ...any)) {
	for _, id := range r.planned() {
		n, err := r.Network(ctx, id)
		var problem *api.Problem
		if errors.As(err, &problem) && problem.Code == api.CodeNotFound {
			continue // it was removed with its last Docker network
		}
		if err == nil {
			_, err = r.Edit(ctx, client.EditOptions{}, &ipam.RemoveNetwork{Network: id, Force: true})
		}
		if err != nil {
			r.Warnf("the plan of the network %s stays in Berth: %s", n.Name, cli.OneLine(err))
			continue
		}
		say("the plan of the network %s is removed from Berth", n.Name)
	}
}

// override is the override file that a project keeps.
type override struct {
	file     string
	text     []byte
	project  *deploy.Project // nil if there is no file to keep
	replicas []string        // containers of services with several
	version  string          // of Compose, which made the containers
}

// override prepares the project's override before the first change.
func (r *leaveRun) override() (out override, err error) {
	if r.notes.Project == "" {
		return out, nil
	}
	engine, err := docker.Open(r.flags.engine.Host)
	if err != nil {
		return out, err
	}
	defer engine.Close()
	p, err := engine.Project(r, r.notes.Project)
	if errors.Is(err, ipam.ErrNotFound) {
		return out, nil // no container has an address to keep
	}
	if err != nil {
		return out, err
	}
	r.SayOfCompose()
	project, err := deploy.Load(r, deploy.Source{Project: p.Name, Files: p.Files, Directory: p.Directory,
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
	out.project, out.replicas, out.version = project, replicas, p.Version
	return out, nil
}

// advice lists what people must do themselves, with their compose command.
func (o *override) advice(command string) (lines []string) {
	project := o.project
	files := ""
	for _, one := range project.Files() {
		files += " -f " + shellWord(one)
	}
	for _, key := range project.SaysDriver() {
		lines = append(lines, fmt.Sprintf("remove driver and options from the ipam of the network %s in %s", key,
			strings.Join(project.Files(), ", ")))
	}
	lines = append(lines, fmt.Sprintf("from now on use: %s -p %s%s -f %s up -d",
		command, project.Name(), files, shellWord(o.file)))
	if len(o.replicas) > 0 {
		lines = append(lines, fmt.Sprintf("a file cannot give replicas their own addresses: %s keep theirs until Compose "+
			"recreates them", strings.Join(o.replicas, ", ")))
	}
	return lines
}

// leftNetworks returns the networks with the addresses of each service's only container, and the containers of services
// with several.
func leftNetworks(notes []*leave.Note) (all []deploy.LeftNetwork, replicas []string) {
	highest := map[string]int{}
	for _, note := range notes {
		for i := range note.Endpoints {
			highest[note.Endpoints[i].Service] = max(highest[note.Endpoints[i].Service], note.Endpoints[i].Number)
		}
	}
	for _, note := range notes {
		n := deploy.LeftNetwork{Key: note.Key, Addresses: map[string][]netip.Addr{}, MACs: map[string]string{}}
		for _, c := range note.New.IPAM.Config {
			n.Subnets = append(n.Subnets, deploy.LeftSubnet{CIDR: c.Subnet, Gateway: c.Gateway, Range: c.IPRange,
				Aux: c.AuxAddress})
		}
		for i := range note.Endpoints {
			endpoint := &note.Endpoints[i]
			switch {
			case endpoint.Service == "":
			case highest[endpoint.Service] > 1:
				replicas = append(replicas, endpoint.Container)
			default:
				n.Addresses[endpoint.Service] = endpoint.Addresses
				if len(endpoint.Settings.MacAddress) > 0 {
					n.MACs[endpoint.Service] = endpoint.Settings.MacAddress.String()
				}
			}
		}
		all = append(all, n)
	}
	slices.Sort(replicas)
	return all, slices.Compact(replicas)
}
