package admin

import "context"

// as is the context of a request of somebody with a role.
func as(ctx context.Context, role Role) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{actor: "somebody", role: role})
}
