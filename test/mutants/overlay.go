package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// switchSource is the package that a mutant's code asks whether the mutant is on.
//
//go:embed switch.txt
var switchSource []byte

// switchPackage is the path of that package inside the module.
const switchPackage = "internal/mutant"

// writeOverlay writes the files with all mutants and the file for the -overlay flag of the go command. It returns
// the path of the latter.
func writeOverlay(t *tree, mutants []mutant, dir string) (string, error) {
	replace := map[string]string{}
	add := func(name string, text []byte) error {
		path := filepath.Join(dir, "overlay", name)
		replace[filepath.Join(t.dir, name)] = path
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o666)
	}
	if err := add(switchPackage+"/mutant.go", switchSource); err != nil {
		return "", err
	}
	for _, p := range t.packages {
		for _, f := range p.files {
			in := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return m.site.file != f.name })
			if len(in) == 0 {
				continue
			}
			if err := add(f.name, t.rewrite(f, in)); err != nil {
				return "", err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o666)
}

// rewrite is the text of a file with its mutants.
func (t *tree) rewrite(f *source, mutants []mutant) []byte {
	name := t.fset.Position(f.syntax.Name.End()).Offset
	head := fmt.Sprintf("%s; import mutant %q", f.text[:name], t.module+"/"+switchPackage)
	// Outer mutants come first, as they render the inner ones. For the same expression, `if` is outside `andor`.
	slices.SortFunc(mutants, func(a, b mutant) int {
		return cmp.Or(a.site.from-b.site.from, b.site.to-a.site.to, cmp.Compare(b.kind, a.kind))
	})
	return []byte(head + t.render(f, name, len(f.text), mutants))
}

// render is the text of a part of a file. mutants are in order, and render uses those inside the part.
func (t *tree) render(f *source, from, to int, mutants []mutant) string {
	var b strings.Builder
	for i, m := range mutants {
		if m.site.from < from || m.site.to > to {
			continue
		}
		b.Write(f.text[from:m.site.from])
		b.WriteString(m.site.with(func(n ast.Node) string {
			return t.render(f, t.fset.Position(n.Pos()).Offset, t.fset.Position(n.End()).Offset, mutants[i+1:])
		}, fmt.Sprintf("mutant.On(%d)", m.id)))
		from = m.site.to
	}
	b.Write(f.text[from:to])
	return b.String()
}
