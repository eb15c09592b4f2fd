package elastic_test

import "testing"

// TestRanges: a range contains only addresses at which a guest can be reached. The list counts allocated and
// associated addresses.
func TestRanges(t *testing.T) {
	begins(t, mapped+`
		uses -> E0-E3 2/1
		range S8+2 host=h1
		allocate S9 host=h1
		uses -> S8/31 1/0; E0-E3 2/1
		off E0
		free E0
		uses -> S8/31 1/0; E0-E3 1/0
		range 0.0.0.0 ! -; at which no guest can be reached
		range 127.0.0.1 ! -; at which no guest can be reached
		range 169.254.0.1 ! -; at which no guest can be reached
		range 224.0.0.1 ! -; at which no guest can be reached
		range 255.255.255.254+2 ! -; 255.255.255.255, at which no guest
		range ff02::1 ! -; at which no guest can be reached
	`)
}
