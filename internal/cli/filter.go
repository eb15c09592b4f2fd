package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// Keys of --filter with a meaning of their own. One key means the same in all lists; each list has only those that make
// sense there.
const (
	keyNetwork = "network"
	keyOwner   = "owner" // an owner or a container's name
	keyProject = "project"
	keyTag     = "tag"
	keyID      = "id"
)

// Key is a key of --filter for rows of type T.
type Key[T any] struct {
	name   string
	values func(*T) []string          // a row's values of the key
	words  []string                   // all possible values; nil: any
	tags   func(*T) map[string]string // of the key tag: the row's tags
	tagged func(*T) ipam.ID           // of the key tag: the network whose tags count
}

// By is a key with one value per row. words are all possible values, if given.
func By[T any](key string, of func(*T) string, words ...string) Key[T] {
	return ByAny(key, func(row *T) []string { return []string{of(row)} }, words...)
}

// ByAny is a key with any number of values per row.
func ByAny[T any](key string, of func(*T) []string, words ...string) Key[T] {
	return Key[T]{name: key, values: of, words: words}
}

// ByProject selects by the Compose project: the first part of an owner such as shop/web/1, or what more returns.
func ByProject[T any](owners func(*T) []string, more ...func(*T) string) Key[T] {
	return ByAny(keyProject, func(row *T) (projects []string) {
		for _, owner := range owners(row) {
			if project, _, path := strings.Cut(owner, "/"); path {
				projects = append(projects, project)
			}
		}
		for _, of := range more {
			if project := of(row); project != "" {
				projects = append(projects, project)
			}
		}
		return projects
	})
}

// ByTag selects by a row's tags: KEY (any value) or KEY=VALUE.
func ByTag[T any](of func(*T) map[string]string) Key[T] { return Key[T]{name: keyTag, tags: of} }

// Filter is the flag --filter of a list. Values of one key are alternatives, and all keys must match.
type Filter[T any] struct {
	keys  []Key[T]
	given []string
	want  map[string][]string // the given values by key
	tags  map[ipam.ID]map[string]string
}

// NewFilter returns the filter with these keys.
func NewFilter[T any](keys []Key[T]) *Filter[T] { return &Filter[T]{keys: keys} }

// Flags is the flag, unless there are no keys.
func (f *Filter[T]) Flags() Flags {
	if len(f.keys) == 0 {
		return nil
	}
	flag := Flag(&f.given, "filter",
		"only rows with this `KEY=VALUE` (repeatable; a row must match each key, with any value given for it): "+
			strings.Join(f.names(), ", "))
	flag.complete = f.complete
	return Flags{flag}
}

// Read parses the flag. Its error is wrong usage.
func (f *Filter[T]) Read() error {
	f.want = map[string][]string{}
	for _, text := range f.given {
		name, value, said := strings.Cut(text, "=")
		i := slices.IndexFunc(f.keys, func(k Key[T]) bool { return k.name == name })
		switch {
		case i < 0 && name == "name" && slices.Contains(f.names(), keyOwner):
			return fmt.Errorf("--filter has no key %q here; write --filter %s=%s for an owner or a container "+
				"name, or --filter '%s=*%s*' for a part of one", name, keyOwner, value, keyOwner, value)
		case i < 0:
			return fmt.Errorf("--filter has no key %q here; its keys are %s", name, strings.Join(f.names(), ", "))
		case !said || value == "":
			return fmt.Errorf("--filter %s has no value; write %s=VALUE", text, name)
		case len(f.keys[i].words) > 0 && !slices.Contains(f.keys[i].words, value):
			return fmt.Errorf("--filter %s matches no row; the values of %s are %s", text, name,
				strings.Join(f.keys[i].words, ", "))
		}
		f.want[name] = append(f.want[name], value)
	}
	return nil
}

// Ask asks the daemon once for the networks' tags, if the filter needs them.
func (f *Filter[T]) Ask(r *Run) error {
	for _, k := range f.keys {
		if k.tagged == nil || len(f.want[k.name]) == 0 || f.tags != nil {
			continue
		}
		all, err := r.Networks(r, "")
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

// Given reports whether the command line has a filter.
func (f *Filter[T]) Given() bool { return len(f.want) > 0 }

// Rows returns the rows that match.
func (f *Filter[T]) Rows(all []T) []T {
	if len(f.want) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(row T) bool { return !f.Fits(&row) })
}

// Fits reports whether a row matches.
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

// has reports whether a row has a value of a key. A star in value matches any characters, as in patterns of owners.
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

// tagged reports whether there is a tag KEY or KEY=VALUE.
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

// complete completes keys, and then values as far as they are known.
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
		if ask := keyRefs[name]; len(values) == 0 && ask != nil {
			values, _ = p.complete(ask)(cmd, nil, "")
		}
		for i, value := range values {
			values[i] = name + "=" + value
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	}
}

// keyRefs has the keys whose values the daemon can list.
var keyRefs = map[string]Refs{keyNetwork: NetworkRefs, keyOwner: AnyOwners, "space": SpaceRefs, keyProject: ProjectRefs,
	keyTag: tagRefs}

func tagRefs(r *Run, _ string) (tags []string, err error) {
	all, err := r.Networks(r, "")
	for i := range all {
		for _, key := range slices.Sorted(maps.Keys(all[i].Tags)) {
			tags = append(tags, key+"="+all[i].Tags[key])
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags), err
}
