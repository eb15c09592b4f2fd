package edit_test

import (
	"context"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

var ctx = context.Background()

// fine ends a test on an error.
func fine(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unchanged runs do, which must change no record and nothing that is shown.
func unchanged(r *ipamtest.Stage, what string, do func()) {
	r.T.Helper()
	records, shown := ipamtest.Dump(r.T, r.Store), r.Everything()
	do()
	if diff := cmp.Diff(records, ipamtest.Dump(r.T, r.Store)) + ipamtest.ShownDiff(shown, r.Everything()); diff != "" {
		r.T.Errorf("%s changed something:\n%s", what, diff)
	}
}

// refused makes edits, which must be refused and change nothing. want is as in a script: "KIND|KIND; text; =CODE".
func refused(r *ipamtest.Stage, what, want string, opt ipam.EditOptions, edits ...ipam.Edit) (err error) {
	r.T.Helper()
	unchanged(r, what, func() {
		_, err = r.S.Edit(ctx, opt, edits...)
		r.Refused(what, want, err)
	})
	return err
}
