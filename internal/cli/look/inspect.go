package look

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const inspectHelp = `Shows everything that Berth knows about objects of any kind, as one JSON array. WHAT is a
complete name, address, MAC, owner or id. To search for a part, use berth find. shop-web-1, shop_web_1 and
shop/web/1 name the same replica.

If several kinds of objects match, the command shows the first kind of this list and names the others on
standard error: network, subnet, lease, address, reservation, free (an address that nobody has), elastic,
pool, exclusion, space, account, range, host. --type selects another kind. If several objects of a kind match,
it shows all of them. If a WHAT does not exist, it reports that, shows the others and exits with code 1.`

// order is that in which kinds are looked at.
var order = []string{ipam.FoundNetwork, ipam.FoundSubnet, ipam.LeaseTenure, ipam.FoundAddress, ipam.ReservationTenure,
	ipam.FoundFree, ipam.ElasticTenure, ipam.FoundPool, ipam.FoundExclusion, ipam.FoundSpace, ipam.FoundAccount,
	ipam.FoundRange, ipam.FoundHost}

// InspectCommand is `berth inspect`.
func InspectCommand() cli.Row {
	var space string
	format := "json"
	var kinds []string
	return cli.Verb{Use: "inspect WHAT [WHAT...]", Short: "Show everything about a name, address or id",
		Long: inspectHelp,
		Example: `  berth inspect net1
  berth inspect 10.8.0.9 shop-web-1
  berth inspect --type reservation 10.8.0.9
  berth inspect --format '{{.Address}} {{.MAC}}' shop/web/1
  berth inspect $(berth find printer -q)`,
		Args: func(r *cli.Run) error {
			isEmpty := func(arg string) bool { return strings.TrimSpace(arg) == "" }
			if len(r.Args) == 0 || slices.ContainsFunc(r.Args, isEmpty) {
				return r.Usagef("WHAT is missing: %s WHAT [WHAT...]", r.Cmd.CommandPath())
			}
			return nil
		},
		Any: inspectable,
		Flags: cli.Flags{
			cli.Flag(&format, "format",
				"`form` of the output: json (one array), yaml, or a Go template for each object").
				Words("json", "yaml"),
			kindFlag("type", &kinds), cli.SpaceFlag(&space)},
		Check: func(*cli.Run) error { return checkKinds("type", kinds) },
		Run: func(r *cli.Run) error {
			show, err := cli.NewThings(r, format)
			if err != nil {
				return err
			}
			if err := r.Ask(); err != nil {
				return err
			}
			w := &wholes{r, space}
			things, missing, err := w.all(kinds)
			if err != nil {
				return err
			}
			if err := show.All(things); err != nil {
				return err
			}
			return r.All(missing)
		}}
}

// all are the things that are called so, and which words name none.
func (w *wholes) all(kinds []string) (things []any, missing, err error) {
	for _, what := range w.Args {
		found, err := w.called(what, kinds)
		if err != nil {
			return nil, nil, err
		}
		if len(found) == 0 {
			missing = errors.Join(missing, notThere(what, kinds, w.space), w.unwitnessed(what))
		}
		for i := range found {
			thing, err := w.whole(&found[i])
			if err != nil {
				return nil, nil, err
			}
			things = append(things, thing)
		}
	}
	return things, missing, nil
}

func notThere(what string, kinds []string, space string) error {
	if len(kinds) == 0 {
		kinds = []string{"network, subnet, lease, address, reservation", "other object"}
	}
	in := ""
	if space != "" {
		in = " in the space " + space
	}
	return fmt.Errorf("no %s%s is called %s%s; `berth find %s` looks for parts of names, too",
		strings.Join(kinds, " or "), in, what, mistyped(what), what)
}

// unwitnessed says why an id that can be a container's is not known; nil: it is none, or whoever has it would be.
func (w *wholes) unwitnessed(what string) error {
	lower := strings.ToLower(what)
	if len(lower) < 12 || len(lower) > 64 || strings.Trim(lower, "0123456789abcdef") != "" {
		return nil
	}
	status, err := w.Status(w)
	switch {
	case err != nil:
		return nil // what was asked for has its answer
	case status.Witness == nil || status.Witness.Seen.IsZero():
		return fmt.Errorf("this daemon does not see the running containers, so it knows no container ids; if %s is "+
			"an id, use the container's name", what)
	}
	return fmt.Errorf("this daemon knows only the ids of containers on host %s and on networks of this Berth",
		status.Host)
}

// called are the things of the first kind of which any is called so; it names the other kinds on standard error.
func (w *wholes) called(what string, kinds []string) ([]ipam.Found, error) {
	all, err := w.Find(w, ipam.FindFilter{Word: what, Exact: true, Kinds: kinds, Space: w.space})
	if err != nil {
		return nil, err
	}
	for _, kind := range order {
		first := slices.Clone(all)
		first = slices.DeleteFunc(first, func(f ipam.Found) bool { return f.Kind != kind })
		if len(first) == 0 {
			continue
		}
		var others []string
		for _, f := range all {
			if f.Kind != kind && !slices.Contains(others, f.Kind) {
				others = append(others, f.Kind)
			}
		}
		if len(others) > 0 {
			w.Warnf("%s also names an object of another kind: %s (see --type)", what, strings.Join(others, ", "))
		}
		return first, nil
	}
	return nil, nil
}

// inspectable completes what has a name.
func inspectable(r *cli.Run, _ string) ([]string, error) {
	names, err := cli.NetworkRefs(r, "")
	if err != nil {
		return nil, err
	}
	owners, err := cli.AnyNames(r, "")
	return append(names, owners...), err
}

// part is a pool or an exclusion, with where it is.
type part[T any] struct {
	Space     string  `json:"space"`
	Network   string  `json:"network"`
	NetworkID ipam.ID `json:"network_id"`
	Subnet    string  `json:"subnet"`
	Range     string  `json:"range"`
	Part      T       `json:"-"`
}

// MarshalJSON is one object of what a part is and where.
func (p part[T]) MarshalJSON() ([]byte, error) {
	type place part[T]
	where, err := json.Marshal(place(p))
	if err != nil {
		return nil, err
	}
	what, err := json.Marshal(p.Part)
	if err != nil {
		return nil, err
	}
	return append(append(where[:len(where)-1], ','), what[1:]...), nil
}
