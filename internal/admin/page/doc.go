// Package page renders Berth's page for browsers: addresses, their holders and history, free addresses, nearly full
// pools, and findings. Every view is a link, and its HTML, JSON and CSV agree. It works without scripts and loads
// nothing from elsewhere. Names that users chose are always escaped.
//
// Package admin authenticates a request and passes it to the view of its path (page.go). A view reads the Records and
// returns blocks (view.go): tables (table.go) and maps (draw.go). answer.go writes the blocks in the requested format.
// Links are relative, so that a proxy may serve the views below any path (links.go).
package page
