// Package page is what a person sees of Berth in a browser: who has which address, who had it, what is free, what is
// nearly full and what is wrong. It promises that every view is a link, that its HTML, JSON and CSV say the same, that
// it works without scripts and loads nothing from elsewhere, and that nothing that somebody has named can be more than
// text on it.
//
// A request comes from the room admin, which has looked at who asks, to the view of its path (page.go). A view asks the
// Records and says what it shows as blocks (view.go): tables (table.go), whose cells have their place in all three
// forms, and maps (draw.go). answer.go writes them in the form that is asked for. The links between views are relative
// (links.go), so that a proxy may put them below any path.
package page
