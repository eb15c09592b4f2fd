package advice

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"berth/internal/ipam"
)

// Each kind of advice has a sentence that says how it is done.
func TestEachHasASentence(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../ipam/advice.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		value, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		text, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if sentence(ipam.Do(text)) == "" {
			t.Errorf("%s has no sentence", value.Names[0].Name)
		}
		return true
	})
	if found < 40 {
		t.Errorf("%d kinds were found", found)
	}
}

func TestText(t *testing.T) {
	refused := errors.New("network a has no pool b")
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused, "network a has no pool b"},
		{ipam.Help(refused, ipam.Advise(ipam.DoListPools, "a")),
			"network a has no pool b; `berth pool ls a` lists its pools"},
		{ipam.Help(refused, ipam.Advise(ipam.DoListPools)), "network a has no pool b; `berth pool ls` lists its pools"},
		{ipam.Help(refused, ipam.OrAdvise(ipam.DoEndExclusion)),
			"network a has no pool b, or remove the exclusion with `berth exclusion rm`"},
		{fmt.Errorf("line 7: %w", ipam.Help(refused, ipam.Advise(ipam.DoRunFsck))),
			"line 7: network a has no pool b; run `berth state check`"},
		{errors.Join(ipam.Help(refused, ipam.Advise(ipam.DoRunFsck)), ipam.Help(refused, ipam.Advise(ipam.DoRunFsck))),
			"network a has no pool b\nnetwork a has no pool b; run `berth state check`"},
		{ipam.Help(refused, ipam.Advise("nothing.known")), "network a has no pool b"},
	} {
		if got := Text(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
