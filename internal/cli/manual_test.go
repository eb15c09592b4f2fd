package cli

import "testing"

func TestMarkdown(t *testing.T) {
	help := "Lists what is <held> by shop/*, and my_name.\n\n  unused_lease  an address\n  two *        lines\nMore."
	want := "Lists what is \\<held> by shop/\\*, and my\\_name.\n\n\n    unused_lease  an address\n" +
		"    two *        lines\n\nMore."
	if got := markdown(help); got != want {
		t.Errorf("%q is to be %q", got, want)
	}
}
