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
	return cli.Group("token", "Tokens for requests to the daemon over the network", tokenCreateCommand(),
		tokenListCommand(), tokenRemoveCommand())
}

const tokenCreateHelp = `Creates a token for requests over the network, and prints it. Berth shows the token only
once, because the daemon keeps only a hash of it. Events name the user of the token as "token NAME".

--output writes the token to a file that only you can read, as --token-file requires.

--role admin allows everything. --role read-only refuses every change.

A token is valid for 90 days. --expires sets another duration; with --no-end the token never expires. From two weeks
before the end, "berth check" and the daemon's log warn of it.

With --account the token is for one account's elastic addresses: with it a client can list, allocate, associate,
disassociate and release them, but sees nothing of other accounts. The token ends with the account.`

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
				"`role` of the token: admin or read-only; required unless you give --account").
				Words(string(api.RoleAdmin), string(api.RoleReadOnly)),
			cli.Flag(&req.Account, "account", "only for the elastic addresses of this `ACCOUNT`").
				Of(cli.AccountRefs).Filled(),
			cli.Flag(&lifetime, "expires",
				"how long the token is valid, a `duration` such as 720h (default: 2160h, 90 days)"),
			cli.Flag(&req.NoEnd, "no-end", "the token is valid until you remove it"),
			cli.Flag(&file, "output",
				"write the token to the new `FILE`, which only you can read (mode 600), instead of standard output").
				Short("o"),
			cli.DryRunFlag(&dryRun)},
		Run: func(r *cli.Run) error {
			if err := roleOf(r, &req, api.Role(role)); err != nil {
				return cli.Usage(r.Cmd, err)
			}
			if r.Given("expires") && lifetime <= 0 {
				return r.Usagef("--expires is %s, but must be longer than zero; for a token that never "+
					"expires, give --no-end", lifetime)
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
		return fmt.Errorf("--account %s limits the token to the elastic addresses of that account, but --role %s "+
			"allows more; give only one of the two", req.Account, role)
	}
	req.Role = api.RoleAccount
	return nil
}

// createToken creates a token and writes it to a new file or, without one, to standard output. It creates the file
// first. If writing fails, the token is removed again.
func createToken(r *cli.Run, req api.TokenRequest, file string) error {
	if file != "" && file != "-" {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, fmt.Errorf("%s already exists, and may contain another token: give another name, or "+
				"remove the file", file))
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
		err = errors.Join(fmt.Errorf("cannot write the token, so Berth has removed it again: %w", err), undone)
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
		Long:    "Removes a token. Berth then refuses requests with that token, and cuts off those in progress.",
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
					return fmt.Errorf("there is no token %q; `berth token ls` lists the tokens", name)
				}
				return r.Say("would remove the token " + name)
			})
		}}
}

var tokenRefs = cli.NamesOf((*client.Client).Tokens, func(t *api.TokenInfo) string { return t.Name })
