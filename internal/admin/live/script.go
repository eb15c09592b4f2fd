package live

import _ "embed"

// Script is what a view loads to be kept fresh: where its main element has data-live, a link to Watch. A view without
// scripts stays as it was loaded.
//
//go:embed live.js
var Script []byte
