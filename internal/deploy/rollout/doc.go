// Package rollout updates the containers of a Compose project one replica at a time, each with its own addresses. It
// does only what the Plan lists. The number of replicas down at once never exceeds the limit in flight. If a canary
// fails, the others stay as they were, or the error names those that do not run.
//
// Draw (draw.go) compares files and engine and makes a Plan (plan.go), without changing anything. stale.go compares a
// saved plan with a fresh one. Run (run.go) executes the plan. exchange.go replaces one replica, tell.go reports
// progress, and restore.go restores the old state after a failure.
package rollout
