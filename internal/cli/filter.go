package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// The keys of --filter. All lists call the same thing by the same key, and each has those that mean something there.
const (
	KeyNetwork = "network"
	KeySpace   = "space"
	KeyHost    = "host"
	KeyOwner   = "owner" // whose something is: an owner, or the name of a container
	KeyTag     = "tag"
	KeyKind    = "kind"
	KeyState   = "state"
	KeyID      = "id"
)

// Key is a key by which the rows of a list can be chosen.
type Key[T any] struct {
	name   string
	values func(*T) []string          // what a row has of it
	words  []string                   // all values that there are; none: any
	tags   func(*T) map[string]string // of the key tag: its own
	tagged func(*T) ipam.ID           // of the key tag: the network whose tags count
}

// By is a key of which a row has one value. With words these are all that there are.
func By[T any](key string, of func(*T) string, words ...string) Key[T] {
	return ByAny(key, func(row *T) []string { return []string{of(row)} }, words...)
}

// ByAny is a key of which a row has any number of values.
func ByAny[T any](key string, of func(*T) []string, words ...string) Key[T] {
	return Key[T]{name: key, values: of, words: words}
}

// ByNetwork chooses by a network: by its name or its id, whole or the first eight digits.
func ByNetwork[T any](name func(*T) string, id func(*T) ipam.ID) Key[T] {
	return ByAny(KeyNetwork, func(row *T) []string {
		n := id(row)
		if n == (ipam.ID{}) {
			return []string{name(row)}
		}
		return []string{name(row), n.String(), n.Short()}
	})
}

// ByTag chooses by the tags of a row: KEY, whatever its value, or KEY=VALUE.
func ByTag[T any](of func(*T) map[string]string) Key[T] { return Key[T]{name: KeyTag, tags: of} }

// ByTagOf chooses by the tags of the network that a row is of.
func ByTagOf[T any](network func(*T) ipam.ID) Key[T] { return Key[T]{name: KeyTag, tagged: network} }

// Filter is the flag --filter of a list: values of one key are alternatives, and all keys must fit.
type Filter[T any] struct {
	keys  []Key[T]
	given []string
	want  map[string][]string // what was given, by key
	tags  map[ipam.ID]map[string]string
}

// NewFilter is the flag of a list that has these keys; without any it has no such flag.
func NewFilter[T any](p *Program, cmd *cobra.Command, keys []Key[T]) *Filter[T] {
	f := &Filter[T]{keys: keys}
	if len(keys) == 0 {
		return f
	}
	cmd.Flags().StringArrayVar(&f.given, "filter", nil, "only rows with this `KEY=VALUE` (repeatable; any value of a key, "+
		"all keys): "+strings.Join(f.names(), ", "))
	Completes(cmd, "filter", f.complete(p))
	return f
}

// Read reads what was given; its error is wrong usage.
func (f *Filter[T]) Read() error {
	f.want = map[string][]string{}
	for _, text := range f.given {
		name, value, said := strings.Cut(text, "=")
		i := slices.IndexFunc(f.keys, func(k Key[T]) bool { return k.name == name })
		switch {
		case i < 0 && name == "name" && slices.Contains(f.names(), KeyOwner):
			return fmt.Errorf("--filter has no key %q here; %s=%s chooses by an owner or the name of a container, and "+
				"*%s* is a part of one", name, KeyOwner, value, value)
		case i < 0:
			return fmt.Errorf("--filter has no key %q here; its keys are %s", name, strings.Join(f.names(), ", "))
		case !said || value == "":
			return fmt.Errorf("--filter %s says no value; write %s=VALUE", text, name)
		case len(f.keys[i].words) > 0 && !slices.Contains(f.keys[i].words, value):
			return fmt.Errorf("--filter %s: no row has that; the values of %s are %s", text, name,
				strings.Join(f.keys[i].words, ", "))
		}
		f.want[name] = append(f.want[name], value)
	}
	return nil
}

// Ask asks the daemon for what the rows do not say themselves. It does so once.
func (f *Filter[T]) Ask(ctx context.Context, c *client.Client) error {
	for _, k := range f.keys {
		if k.tagged == nil || len(f.want[k.name]) == 0 || f.tags != nil {
			continue
		}
		all, err := c.Networks(ctx, "")
		if err != nil {
			return err
		}
		f.tags = map[ipam.ID]map[string]string{}
		for i := range all {
			f.tags[all[i].ID] = all[i].Tags
		}
	}
	return nil
}

// Given tells whether something was given.
func (f *Filter[T]) Given() bool { return len(f.want) > 0 }

// Rows are those that fit.
func (f *Filter[T]) Rows(all []T) []T {
	if len(f.want) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(row T) bool { return !f.Fits(&row) })
}

// Fits tells whether a row is one that was asked for.
func (f *Filter[T]) Fits(row *T) bool {
	for i := range f.keys {
		k := &f.keys[i]
		want := f.want[k.name]
		if len(want) > 0 && !slices.ContainsFunc(want, func(value string) bool { return f.has(k, row, value) }) {
			return false
		}
	}
	return true
}

// has tells whether a row has a value of a key. A star stands for any characters, as in the patterns of owners.
func (f *Filter[T]) has(k *Key[T], row *T, value string) bool {
	switch {
	case k.tags != nil:
		return tagged(k.tags(row), value)
	case k.tagged != nil:
		return tagged(f.tags[k.tagged(row)], value)
	}
	return slices.ContainsFunc(k.values(row), func(has string) bool {
		return has == value || strings.Contains(value, "*") && ipam.MatchesPattern(value, has)
	})
}

// tagged tells whether there is a tag KEY, or KEY=VALUE.
func tagged(tags map[string]string, want string) bool {
	key, value, said := strings.Cut(want, "=")
	has, there := tags[key]
	return there && (!said || has == value)
}

func (f *Filter[T]) names() []string {
	names := make([]string, len(f.keys))
	for i, k := range f.keys {
		names[i] = k.name
	}
	return names
}

// complete completes keys, and then their values where the shell can know them.
func (f *Filter[T]) complete(p *Program) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		name, _, said := strings.Cut(typed, "=")
		var values []string
		if !said {
			for _, key := range f.names() {
				values = append(values, key+"=")
			}
			return values, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		for _, k := range f.keys {
			if k.name == name {
				values = append(values, k.words...)
			}
		}
		if ask := valuesOf[name]; len(values) == 0 && ask != nil {
			values, _ = p.Complete(cmd, ask)
		}
		for i, value := range values {
			values[i] = name + "=" + value
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// valuesOf are the values of keys that the daemon can list.
var valuesOf = map[string]func(context.Context, *client.Client) ([]string, error){
	KeyNetwork: func(ctx context.Context, c *client.Client) ([]string, error) { return NetworkRefs(ctx, c, "") },
	KeyOwner:   func(ctx context.Context, c *client.Client) ([]string, error) { return AnyOwners(ctx, c, "") },
	KeySpace:   spaceNames,
	KeyTag: func(ctx context.Context, c *client.Client) (tags []string, err error) {
		all, err := c.Networks(ctx, "")
		for i := range all {
			for _, key := range slices.Sorted(maps.Keys(all[i].Tags)) {
				tags = append(tags, key+"="+all[i].Tags[key])
			}
		}
		slices.Sort(tags)
		return slices.Compact(tags), err
	},
}
