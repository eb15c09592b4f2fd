package deploy

import (
	"encoding/json"
	"testing"

	"berth/internal/golden"
	"berth/internal/ipam"
)

// TestGoldenCompose: a Compose file with every key of x-berth asks Berth for the same as under 1.0, and its
// services are deployed on the same terms. TestOverride checks the overrides.
func TestGoldenCompose(t *testing.T) {
	project := load(t, Source{Files: []string{golden.Path(t, "compose.yaml")}})
	p, err := project.Plan(Mapping{}, planned())
	fine(t, err)
	fine(t, p.Check())
	golden.JSON(t, "compose.json", map[string]any{"services": p.Services(), "edits": named(t, p.Edits()),
		"elastic edits": named(t, p.ElasticEdits())})
}

// named returns edits as the API shows them.
func named(t *testing.T, edits []ipam.Edit) (all []map[string]any) {
	t.Helper()
	for _, e := range edits {
		raw, err := json.Marshal(e)
		fine(t, err)
		fields := golden.Plain(t, raw).(map[string]any)
		fields["op"] = e.Op()
		all = append(all, fields)
	}
	return all
}
