package berth_test

import (
	"os"
	"strings"
	"testing"
)

// attacksOfPage is how many rows docs/dev/attacks.md has.
const attacksOfPage = 69

// TestAttacks: each row of docs/dev/attacks.md names existing tests, or quotes from docs/security.md that the
// attack is not defended.
func TestAttacks(t *testing.T) {
	text := func(file string) string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	security, rows := strings.Join(strings.Fields(text("docs/security.md")), " "), 0
	for line := range strings.Lines(text("docs/dev/attacks.md")) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 3 || tableRule.MatchString(strings.TrimSpace(line)) || cells[0] == " who " {
			continue
		}
		rows++
		by := strings.TrimSpace(cells[2])
		if quote, open := strings.CutPrefix(by, "not defended: "); open {
			if !strings.Contains(security, quote) {
				t.Errorf("docs/security.md does not say %q", quote)
			}
			continue
		}
		for part := range strings.SplitSeq(by, ", ") {
			switch name := strings.Trim(part, "`"); {
			case testNamed.FindString(name) == name && name != "":
				holdTest(t, name)
			case scriptNamed.FindString(name) == name && name != "":
				holdScript(t, name, "")
			default:
				t.Errorf("%q is no test, script or quotation: %s", part, line)
			}
		}
	}
	if rows != attacksOfPage {
		t.Errorf("docs/dev/attacks.md has %d rows, not %d", rows, attacksOfPage)
	}
}
