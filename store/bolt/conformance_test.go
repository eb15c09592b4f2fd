package bolt

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"berth/store"
	"berth/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, filepath.Join(t.TempDir(), "berth.db"))
	})
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
}
