// Package look has the commands that search all nouns: find and inspect. They change nothing. If nothing matches, the
// error names the word and where it was searched for.
//
// find.go asks the daemon for every match of a word. inspect.go looks for an exact name and then prints the whole
// object (whole.go).
package look

import (
	"fmt"
	"slices"
	"strings"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const findHelp = `Searches addresses, prefixes, ranges, MACs, ids, names, owners, tags and notes. A part of a
word matches, and case does not matter. All names of a replica match: shop-web-1, shop_web_1 and shop/web/1
are the same. An address also matches its subnet, pools and exclusions. The command reports an address that is
free.

KIND is the type of the object, and WHY the field that matched. A lease shows the current or last holder. The
kind address means an address of a device (berth address take). If ranges or IPv6 addresses make the table too
wide, only --format wide shows WHY and NETWORK. --kind limits the kinds. For removed objects use berth who and
berth events. If the daemon reads the engine, you can search for a container of its host by id or by MAC. The
short id of docker ps works
too.`

// FindCommand is `berth find`.
func FindCommand() cli.Row {
	var filter ipam.FindFilter
	return cli.Listing[ipam.Found]{
		Verb: cli.Verb{Use: "find WORD", Short: "Find a word in names, addresses, MACs, tags and notes", Long: findHelp,
			Refs: []cli.Refs{cli.AnyNames},
			Example: `  berth find shop_web_1
  berth find 10.8.0.9
  berth find 02:42:0a
  berth find printer --kind reservation --kind address
  berth find web --format json`,
			Flags: cli.Flags{cli.SpaceFlag(&filter.Space), kindFlag("kind", &filter.Kinds)},
			Check: func(r *cli.Run) error {
				filter.Word = r.Args[0]
				return checkKinds("kind", filter.Kinds)
			}},
		Said: true,
		Keys: cli.Fields{"network", "space", "host", "owner=Name", "tag",
			cli.Choice("kind", ipam.FoundKinds()...), "state"},
		Columns: cli.Fields{
			"Kind",
			cli.Field[ipam.Found]("What").Names(),
			cli.Field[ipam.Found]("Network").OrWide(foundWithin(whatBesideNetwork)),
			"Name",
			cli.Col("WHY", foundWhy).AtMost(whyWidth).OrWide(foundWithin(whatBesideWhy)),
			"Subnet,wide", "Space,wide", "MAC,wide", "Host,wide",
		},
		Fetch: func(r *cli.Run) ([]ipam.Found, error) {
			all, err := r.Find(r, filter)
			if err == nil && len(all) == 0 {
				r.Warnf("nothing matches %q%s; `berth who` and `berth events` show past holders", filter.Word,
					mistyped(filter.Word))
			}
			return all, err
		},
	}
}

// mistyped says what is wrong with a word that looks like an IPv4 address and is none, such as 10.0.0.009.
func mistyped(word string) string {
	_, wrong := alloc.ParseAddr(word)
	if wrong == nil || strings.Count(word, ".") != 3 || strings.Trim(word, "0123456789.") != "" {
		return ""
	}
	return ": " + wrong.Error()
}

// kindFlag is a flag that takes kinds of what is found.
func kindFlag(name string, kinds *[]string) cli.FlagRow {
	return cli.Flag(kinds, name, "only objects of the `KIND` (repeatable): "+strings.Join(ipam.FoundKinds(), ", ")).
		Words(ipam.FoundKinds()...)
}

func checkKinds(flag string, kinds []string) error {
	for _, kind := range kinds {
		if ipam.FoundGroup(kind) == 0 {
			return fmt.Errorf("--%s is %q and must be one of %s", flag, kind, strings.Join(ipam.FoundKinds(), ", "))
		}
	}
	return nil
}

// What 80 columns leave: for WHY, and for WHAT, which ranges and IPv6 make long, beside WHY and beside NETWORK alone.
const (
	whyWidth          = 12
	whatBesideWhy     = 19
	whatBesideNetwork = 33
)

// foundWithin tells whether all that was found has at most so many characters.
func foundWithin(most int) func([]ipam.Found) bool {
	return func(all []ipam.Found) bool {
		return !slices.ContainsFunc(all, func(f ipam.Found) bool { return len(f.What) > most })
	}
}

// foundWhy says in which texts the word was: what a column shows already only by its field.
func foundWhy(f *ipam.Found) string {
	var why []string
	for _, m := range f.Why {
		text := m.Field
		if m.Text != f.Name && m.Text != f.What && m.Text != f.Network && m.Text != f.ID.String() {
			text += " " + m.Text
		}
		why = append(why, text)
	}
	if f.State != "" && f.State != "held" {
		why = append(why, f.State)
	}
	return strings.Join(why, ", ")
}
