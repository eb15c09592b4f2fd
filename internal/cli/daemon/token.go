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

	"github.com/spf13/cobra"
)

// TokenCommand is `berth token`.
func TokenCommand(p *cli.Program) *cobra.Command {
	return cli.Group("token", "Tokens for those who ask the daemon over the network", tokenCreateCommand(p),
		tokenListCommand(p), tokenRemoveCommand(p))
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

func tokenCreateCommand(p *cli.Program) *cobra.Command {
	var req api.TokenRequest
	var role, file string
	var lifetime time.Duration
	var dryRun bool
	cmd := cli.Verb{Use: "create NAME", Short: "Create a token and print it", Long: tokenCreateHelp,
		Args: cli.OneArg("the name of the token"),
		Example: `  berth token create ci --role admin --output ci.token
  berth token create dashboard --role read-only --expires 720h
  berth token create shop --account shop
  berth --admin-socket https://berth.example:7890 --token-file ci.token lease ls`}.Command(p)
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "`role` of who has it: admin or read-only; it must be given, unless --account is")
	f.StringVar(&req.Account, "account", "", "only for the elastic addresses of this `ACCOUNT`")
	f.DurationVar(&lifetime, "expires", 0, "how long it is valid, a `duration` such as 720h (default: 2160h, 90 days)")
	f.BoolVar(&req.NoEnd, "no-end", false, "it is valid until it is removed")
	f.StringVarP(&file, "output", "o", "", "write it to the new `FILE`, which only you can read (mode 600), "+
		"instead of standard output")
	cli.DryRunFlag(cmd, &dryRun)
	cli.Completes(cmd, "role", cli.Words(string(api.RoleAdmin), string(api.RoleReadOnly)))
	cli.Completes(cmd, "account", p.CompleteFlag(accountRefs))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := roleOf(cmd, &req, api.Role(role)); err != nil {
			return cli.Usage(cmd, err)
		}
		if cmd.Flags().Changed("expires") && lifetime <= 0 {
			return cli.Usage(cmd, fmt.Errorf("--expires is %s and must be more than nothing; a token that is valid "+
				"until it is removed takes --no-end", lifetime))
		}
		if req.NoEnd && lifetime != 0 {
			return cli.Usage(cmd,
				fmt.Errorf("--expires %s and --no-end contradict each other; give one of them", lifetime))
		}
		req.Name, req.Lifetime = args[0], ipam.Duration(lifetime)
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			if dryRun {
				return p.Say([]string{fmt.Sprintf("would create the token %s with the role %s", req.Name, req.Role)})
			}
			return createToken(ctx, p, c, req, file)
		})
	}
	return cmd
}

// roleOf gives a token its role; one for an account has that of an account and no other.
func roleOf(cmd *cobra.Command, req *api.TokenRequest, role api.Role) error {
	if err := cli.NotEmpty(cmd, "account"); err != nil {
		return err
	}
	if req.Role = role; req.Account == "" {
		if role == "" {
			return fmt.Errorf("say for what the token is: --role %s for everything, --role %s for looking", api.RoleAdmin,
				api.RoleReadOnly)
		}
		return nil
	}
	if cmd.Flags().Changed("role") && role != api.RoleAccount {
		return fmt.Errorf("--account %s is only for the elastic addresses of that account, and --role %s for more; "+
			"give one of them", req.Account, role)
	}
	req.Role = api.RoleAccount
	return nil
}

func accountRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	all, err := c.Accounts(ctx)
	for _, a := range all {
		names = append(names, a.Name)
	}
	return names, err
}

// createToken creates a token and writes it to a new file or, without one, to standard output. The file is begun before
// the token is created; one that cannot be kept is no token.
func createToken(ctx context.Context, p *cli.Program, c *client.Client, req api.TokenRequest, file string) error {
	if file != "" && file != "-" {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, fmt.Errorf("%s is there already, and may hold another token: give another name, or "+
				"remove it", file))
		}
	}
	made := false
	err := cli.WriteWith(cli.PrivateMode, p.Out, file, func(w io.Writer) error {
		token, err := c.CreateToken(ctx, req)
		if err != nil {
			return err
		}
		made = true
		_, err = fmt.Fprintln(w, token.Token)
		return err
	})
	if err != nil && made {
		_, undone := c.RemoveToken(context.WithoutCancel(ctx), req.Name)
		err = errors.Join(fmt.Errorf("the token could not be written, and was removed again: %w", err), undone)
	}
	return err
}

const tokenListHelp = `Lists the tokens for requests over the network. A token cannot be shown again: if you
lost it, create
another.`

func tokenListCommand(p *cli.Program) *cobra.Command {
	return cli.Listing[api.TokenInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List tokens", Long: tokenListHelp,
			Example: "  berth token ls\n  berth token ls -q\n  berth token ls --format json"},
		Keys:    tokenKeys(),
		Columns: tokenColumns,
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]api.TokenInfo, error) {
			return c.Tokens(ctx)
		},
	}.Command(p)
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

func tokenKeys() []cli.Key[api.TokenInfo] {
	return []cli.Key[api.TokenInfo]{
		cli.By(cli.KeyKind, func(t *api.TokenInfo) string { return string(t.Role) }, string(api.RoleAdmin),
			string(api.RoleReadOnly), string(api.RoleAccount)),
		cli.By(cli.KeyState, tokenState, tokenValid, tokenExpired),
	}
}

func tokenColumns(cli.Output) []cli.Column[api.TokenInfo] {
	return []cli.Column[api.TokenInfo]{
		cli.Col("TOKEN", func(t *api.TokenInfo) string { return t.Name }),
		cli.Col("ROLE", func(t *api.TokenInfo) string { return string(t.Role) }),
		cli.Col("ACCOUNT", func(t *api.TokenInfo) string { return t.Account }),
		cli.Col("EXPIRES", func(t *api.TokenInfo) string { return cli.ShortTime(t.Expires) }),
		cli.StateCol("STATE", tokenState),
		cli.WideCol("CREATED", func(t *api.TokenInfo) string { return cli.ShortTime(t.Created) }),
		cli.WideCol("BY", func(t *api.TokenInfo) string { return t.By }),
	}
}

func tokenRemoveCommand(p *cli.Program) *cobra.Command {
	var dryRun bool
	cmd := cli.Verb{Use: "rm NAME...", Short: "Remove tokens", Args: cli.Some("NAME"),
		Refs:    []cli.Refs{tokenRefs},
		Long:    "Removes a token: requests with it are refused from then on, and one that is under way is cut off.",
		Example: "  berth token rm ci\n  berth token rm ci --dry-run"}.Command(p)
	cli.DryRunFlag(cmd, &dryRun)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			remove := func(name string) error {
				_, err := c.RemoveToken(ctx, name)
				return err
			}
			if dryRun {
				known, err := tokenRefs(ctx, c, "")
				if err != nil {
					return err
				}
				remove = func(name string) error {
					if !slices.Contains(known, name) {
						return fmt.Errorf("there is no token %q; `berth token ls` lists those that are there", name)
					}
					return p.Say([]string{"would remove the token " + name})
				}
			}
			var failed []error
			for _, name := range args {
				failed = append(failed, remove(name))
			}
			return errors.Join(failed...)
		})
	}
	return cmd
}

func tokenRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	all, err := c.Tokens(ctx)
	for _, t := range all {
		names = append(names, t.Name)
	}
	return names, err
}
