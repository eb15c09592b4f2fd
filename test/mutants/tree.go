package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tree is a module and those of its packages that a run covers.
type tree struct {
	dir      string // absolute
	module   string // its import path
	packages []*pkg // by import path
	fset     *token.FileSet
	whole    bool // all packages of the module
}

// pkg is a package, as go list describes it.
type pkg struct {
	ImportPath   string
	Dir          string
	Name         string
	Export       string // the export data file
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	DepOnly      bool
	Module       *struct{ Path, Dir string }

	rel   string // path inside the module
	files []*source
	info  *types.Info
	lines int
}

// source is a file of a production package.
type source struct {
	name   string // path inside the module
	text   []byte
	syntax *ast.File
}

// load gets the packages that match the patterns from go list, and parses and checks those that can have mutants.
func load(ctx context.Context, dir string, patterns []string) (*tree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-export", "-deps",
		"-json=ImportPath,Dir,Name,Export,GoFiles,TestGoFiles,XTestGoFiles,DepOnly,Module", "--"}
	cmd := exec.CommandContext(ctx, "go", append(args, patterns...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	t := &tree{dir: dir, fset: token.NewFileSet(), whole: slices.Contains(patterns, "./...")}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && p.Module != nil {
			t.module = p.Module.Path
			p.rel = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, t.module), "/")
			t.packages = append(t.packages, p)
		}
	}
	read := importer.ForCompiler(t.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, p := range t.packages {
		if p.production() {
			if err := t.check(p, read); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// production reports whether the module ships a package.
func (p *pkg) production() bool {
	top, _, _ := strings.Cut(p.rel, "/")
	return p.rel != "" && top != "bench" && top != "test" && top != "scripts" && !strings.HasSuffix(p.Name, "test")
}

// tested reports whether a run includes the tests of a package. The root's tests read the tree on disk, where no
// mutant is, and those of test/cluster take too long.
func (p *pkg) tested() bool {
	return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 && p.rel != "" && p.rel != "test/cluster" &&
		!strings.HasPrefix(p.rel, "scripts/")
}

// check parses the files of a package and finds their types.
func (t *tree) check(p *pkg, read types.Importer) error {
	var all []*ast.File
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		path := filepath.Join(p.rel, name)
		syntax, err := parser.ParseFile(t.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all = append(all, syntax)
		if !ast.IsGenerated(syntax) {
			p.files = append(p.files, &source{name: path, text: text, syntax: syntax})
			p.lines += bytes.Count(text, []byte("\n"))
		}
	}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	_, err := (&types.Config{Importer: read}).Check(p.ImportPath, t.fset, all, p.info)
	return err
}
