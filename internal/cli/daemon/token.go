package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// TokenCommand is `berth token`.
func TokenCommand() cli.Row {
	return cli.Group("token", "Tokens for those who ask the daemon over the network", tokenCreateCommand(),
		tokenListCommand(), tokenRemoveCommand())
}

const tokenCreateHelp = `Creates a token for requests over the network, and prints it. It is shown only once,
because the daemon
keeps a hash of it. Events name its user as "token NAME".

--output writes it to a file that nobody else can read, as --token-file requires.

--role admin allows everything. --role read-only refuses every change.

A token is valid for 90 days. --expires sets another time, and --no-end none. Two weeks before its end, "berth check"
and the daemon's log report it.

With --account the token is for one account's elastic addresses: it lists, allocates, associates, disassociates and
releases them, and shows nothing of other accounts. It ends with the account.`

func tokenCreateCommand() cli.Row {
	var req api.TokenRequest
	var role, file string
	var lifetime time.Duration
	var dryRun bool
	return cli.Verb{Use: "create NAME", Short: "Create a token and print it", Long: tokenCreateHelp,
		Args: cli.OneArg("the name of the token"),
		Example: `  berth token create ci --role admin --output ci.token
  berth token create dashboard --role read-only --expires 720h
  berth token create shop --account shop
  berth --admin-socket https://berth.example:7890 --token-file ci.token lease ls`,
		Flags: cli.Flags{
			cli.Flag(&role, "role",
				"`role` of who has it: admin or read-only; it must be given, unless --account is").
				Words(string(api.RoleAdmin), string(api.RoleReadOnly)),
			cli.Flag(&req.Account, "account", "only for the elastic addresses of this `ACCOUNT`").
				Of(cli.AccountRefs).Filled(),
			cli.Flag(&lifetime, "expires",
				"how long it is valid, a `duration` such as 720h (default: 2160h, 90 days)"),
			cli.Flag(&req.NoEnd, "no-end", "it is valid until it is removed"),
			cli.Flag(&file, "output",
				"write it to the new `FILE`, which only you can read (mode 600), instead of standard output").
				Short("o"),
			cli.DryRunFlag(&dryRun)},
		Run: func(r *cli.Run) error {
			if err := roleOf(r, &req, api.Role(role)); err != nil {
				return cli.Usage(r.Cmd, err)
			}
			if r.Given("expires") && lifetime <= 0 {
				return r.Usagef("--expires is %s and must be more than nothing; a token that is valid "+
					"until it is removed takes --no-end", lifetime)
			}
			if req.NoEnd && lifetime != 0 {
				return r.Usagef("--expires %s and --no-end contradict each other; give one of them", lifetime)
			}
			req.Name, req.Lifetime = r.Args[0], ipam.Duration(lifetime)
			if err := r.Ask(); err != nil {
				return err
			}
			if dryRun {
				return r.Sayf("would create the token %s with the role %s", req.Name, req.Role)
			}
			return createToken(r, req, file)
		}}
}

// roleOf sets the role of a token. A token for an account has the role account and no other.
func roleOf(r *cli.Run, req *api.TokenRequest, role api.Role) error {
	if req.Role = role; req.Account == "" {
		if role == "" {
			return fmt.Errorf("--role is missing: --role %s allows everything, --role %s only reading", api.RoleAdmin,
				api.RoleReadOnly)
		}
		return nil
	}
	if r.Given("role") && role != api.RoleAccount {
		return fmt.Errorf("--account %s is only for the elastic addresses of that account, and --role %s for more; "+
			"give one of them", req.Account, role)
	}
	req.Role = api.RoleAccount
	return nil
}

// createToken creates a token and writes it to a new file or, without one, to standard output. It creates the file
// first. If writing fails, the token is removed again.
func createToken(r *cli.Run, req api.TokenRequest, file string) error {
	if file != "" && file != "-" {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, fmt.Errorf("%s is there already, and may hold another token: give another name, or "+
				"remove it", file))
		}
	}
	made := false
	err := cli.WriteWith(cli.PrivateMode, r.Out, file, func(w io.Writer) error {
		token, err := r.CreateToken(r, req)
		if err != nil {
			return err
		}
		made = true
		_, err = fmt.Fprintln(w, token.Token)
		return err
	})
	if err != nil && made {
		_, undone := r.RemoveToken(context.WithoutCancel(r), req.Name)
		err = errors.Join(fmt.Errorf("the token could not be written, so it was removed: %w", err), undone)
	}
	return err
}

const tokenListHelp = `Lists the tokens for requests over the network. A token cannot be shown again: if you
lost it, create
another.`

func tokenListCommand() cli.Row {
	return cli.Listing[api.TokenInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List tokens", Long: tokenListHelp,
			Example: "  berth token ls\n  berth token ls -q\n  berth token ls --format json"},
		Keys: cli.Fields{
			cli.Choice("kind=Role", string(api.RoleAdmin), string(api.RoleReadOnly), string(api.RoleAccount)),
			cli.By("state", tokenState, tokenValid, tokenExpired)},
		Columns: cli.Fields{"TOKEN=Name", "Role", "Account", "Expires", cli.Col("STATE", tokenState).Marked(),
			"Created,wide", "By,wide"},
		Fetch: cli.All((*client.Client).Tokens),
	}
}

// The states of tokens.
const (
	tokenValid   = "valid"
	tokenExpired = "expired"
)

func tokenState(t *api.TokenInfo) string {
	if t.Expired {
		return tokenExpired
	}
	return tokenValid
}

func tokenRemoveCommand() cli.Row {
	var dryRun bool
	return cli.Verb{Use: "rm NAME...", Short: "Remove tokens",
		Refs:    []cli.Refs{tokenRefs},
		Long:    "Removes a token: requests with it are refused from then on, and one that is under way is cut off.",
		Example: "  berth token rm ci\n  berth token rm ci --dry-run",
		Flags:   cli.Flags{cli.DryRunFlag(&dryRun)},
		Ask: func(r *cli.Run) error {
			if !dryRun {
				return cli.Each(r.Args, func(name string) error {
					_, err := r.RemoveToken(r, name)
					return err
				})
			}
			known, err := tokenRefs(r, "")
			if err != nil {
				return err
			}
			return cli.Each(r.Args, func(name string) error {
				if !slices.Contains(known, name) {
					return fmt.Errorf("there is no token %q; `berth token ls` lists those that are there", name)
				}
				return r.Say("would remove the token " + name)
			})
		}}
}

var tokenRefs = cli.NamesOf((*client.Client).Tokens, func(t *api.TokenInfo) string { return t.Name })
