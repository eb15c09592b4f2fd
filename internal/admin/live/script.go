package live

import _ "embed"

// Script makes a view refresh itself. The view's main element has data-live, a link to Watch. Without scripts a view
// stays as it was loaded.
//
//go:embed live.js
var Script []byte
