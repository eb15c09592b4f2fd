package main

import (
	"context"

	"berth/internal/admin"

	"github.com/spf13/cobra"
)

// list shows what the daemon has of one kind, in the format that was asked for. A wrong format is told before the daemon is
// looked for.
func list[T any](p *program, cmd *cobra.Command, out output, columns []column[T], id func(*T) string,
	fetch func(context.Context, *admin.Client) ([]T, error)) error {
	return listWith(p, cmd, out, columns, column[T]{}, id, fetch)
}

// listWith is list with a further column in the end, where something has a value in it.
func listWith[T any](p *program, cmd *cobra.Command, out output, columns []column[T], further column[T], id func(*T) string,
	fetch func(context.Context, *admin.Client) ([]T, error)) error {
	show, err := newTable(p.out, cmd, out, columns, id)
	if err != nil {
		return err
	}
	return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
		all, err := fetch(ctx, c)
		if err != nil {
			return err
		}
		for i := range all {
			if further.value != nil && further.value(&all[i]) != "" {
				show.columns = append(show.columns, further)
				break
			}
		}
		return show.rows(all)
	})
}

// ask finds the daemon and has fn ask it.
func (p *program) ask(cmd *cobra.Command, fn func(context.Context, *admin.Client) error) error {
	client, err := p.find(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	return fn(cmd.Context(), client)
}
