package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// place identifies a mutant even after its line has moved.
type place struct {
	file string // below the module
	fn   string // function, with its receiver
	kind string // if, for, equal, bound, andor, call, assign, step, bool, int
	text string // of the line, without its comment
	nth  int    // index among those that share all of this
}

// site is a place where one mutant can change a file.
type site struct {
	place
	line, col int
	pkg       *pkg
	from, to  int // the bytes of the file that the change replaces
	// with is the replacing code. inner gives the code of the expressions inside, which may contain further mutants.
	// on is the call that asks whether this mutant is on.
	with func(inner func(ast.Node) string, on string) string
}

// sites are all sites in the packages of a tree, file by file.
func (t *tree) sites() []*site {
	var all []*site
	for _, p := range t.packages {
		for _, f := range p.files {
			all = append(all, t.sitesOf(p, f)...)
		}
	}
	seen := map[place]int{}
	for _, s := range all {
		n := seen[s.place]
		seen[s.place]++
		s.nth = n
	}
	return all
}

func (t *tree) sitesOf(p *pkg, f *source) (all []*site) {
	lines := bytes.Split(f.text, []byte("\n"))
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		name := fn.Name.Name
		if fn.Recv != nil {
			name = strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*") + "." + name
		}
		look := &looker{info: p.info, add: func(n ast.Node, kind string, with func(func(ast.Node) string, string) string) {
			pos := t.fset.Position(n.Pos())
			line, _, _ := strings.Cut(string(lines[pos.Line-1]), " // ")
			all = append(all, &site{
				place: place{file: f.name, fn: name, kind: kind, text: strings.TrimSpace(line)},
				line:  pos.Line, col: pos.Column,
				pkg: p, from: pos.Offset, to: t.fset.Position(n.End()).Offset, with: with,
			})
		}}
		ast.PreorderStack(fn.Body, nil, look.visit)
	}
	return all
}

// looker finds the sites in a function.
type looker struct {
	info *types.Info
	add  func(n ast.Node, kind string, with func(inner func(ast.Node) string, on string) string)
}

func (l *looker) visit(n ast.Node, stack []ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.IfStmt:
		l.negate("if", n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			l.negate("for", n.Cond)
		}
	case *ast.BinaryExpr:
		l.binary(n, stack[len(stack)-1])
	case *ast.BlockStmt:
		l.statements(n.List)
	case *ast.CaseClause:
		l.statements(n.Body)
	case *ast.CommClause:
		l.statements(n.Body)
	case *ast.ReturnStmt:
		for _, e := range n.Results {
			l.truth(e)
		}
	case *ast.BasicLit:
		l.number(n, stack[len(stack)-1])
	}
	return true
}

// isBool reports whether an expression is of type bool and not a constant.
func (l *looker) isBool(e ast.Expr) bool {
	tv := l.info.Types[e]
	return tv.Value == nil && (tv.Type == types.Typ[types.Bool] || tv.Type == types.Typ[types.UntypedBool])
}

func (l *looker) negate(kind string, e ast.Expr) {
	if l.isBool(e) {
		l.add(e, kind, func(inner func(ast.Node) string, on string) string {
			return "((" + inner(e) + ") != " + on + ")"
		})
	}
}

func (l *looker) binary(e *ast.BinaryExpr, parent ast.Node) {
	if !l.isBool(e) {
		return
	}
	switch e.Op {
	case token.EQL, token.NEQ:
		switch parent.(type) {
		case *ast.IfStmt, *ast.ForStmt: // the statement negates it as a condition
		default:
			l.negate("equal", e)
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		// The two differ only for equal sides. Only then the mutant counts as reached, unless evaluating has effects.
		pure := l.pure(e.X) && l.pure(e.Y)
		l.add(e, "bound", func(inner func(ast.Node) string, on string) string {
			x, y := inner(e.X), inner(e.Y)
			if pure {
				return fmt.Sprintf("((%s %s %s) != (%s == %s && %s))", x, e.Op, y, x, y, on)
			}
			return fmt.Sprintf("((%s %s %s) != (%s && %s == %s))", x, e.Op, y, on, x, y)
		})
	case token.LAND, token.LOR:
		other := map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}[e.Op]
		l.add(e, "andor", func(inner func(ast.Node) string, on string) string {
			x, y := inner(e.X), inner(e.Y)
			return fmt.Sprintf("(%s && ((%s) %s (%s)) || !%s && ((%s) %s (%s)))", on, x, other, y, on, x, e.Op, y)
		})
	}
}

// pure reports whether evaluating an expression again has no effects.
func (l *looker) pure(e ast.Expr) bool {
	pure := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			tv := l.info.Types[n.Fun]
			name, _ := n.Fun.(*ast.Ident)
			pure = pure && (tv.IsType() || tv.IsBuiltin() && name != nil && (name.Name == "len" || name.Name == "cap"))
		case *ast.UnaryExpr:
			pure = pure && n.Op != token.ARROW
		case *ast.FuncLit:
			pure = false
		}
		return pure
	})
	return pure
}

// statements finds the statements of a block that can be removed.
func (l *looker) statements(list []ast.Stmt) {
	for _, s := range list {
		kind := ""
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && !stays(call) {
				kind = "call"
			}
		case *ast.AssignStmt:
			if blank, ok := s.Lhs[0].(*ast.Ident); s.Tok != token.DEFINE && (!ok || blank.Name != "_") {
				kind = "assign"
			}
		case *ast.IncDecStmt:
			kind = "step"
		}
		if kind != "" {
			l.add(s, kind, func(inner func(ast.Node) string, on string) string {
				return "if !" + on + " { " + inner(s) + " }"
			})
		}
	}
}

// stays reports whether a call must stay: panic may end a function, log lines have no tests, and only the race
// detector could miss a lock.
func stays(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		switch strings.TrimSuffix(strings.TrimSuffix(f.Sel.Name, "f"), "ln") {
		case "Lock", "Unlock", "RLock", "RUnlock", "Trace", "Debug", "Info", "Warn", "Error":
			return true
		}
	}
	return false
}

// truth finds a returned true or false.
func (l *looker) truth(e ast.Expr) {
	name, ok := e.(*ast.Ident)
	if !ok || l.info.Types[e].Type != types.Typ[types.Bool] {
		return
	}
	switch l.info.Uses[name] {
	case types.Universe.Lookup("true"):
		l.add(e, "bool", func(_ func(ast.Node) string, on string) string { return "!" + on })
	case types.Universe.Lookup("false"):
		l.add(e, "bool", func(_ func(ast.Node) string, on string) string { return on })
	}
}

// number finds an integer to which the code may add one: not where a constant is needed, not in a constant, and
// not the size of something made.
func (l *looker) number(e *ast.BasicLit, parent ast.Node) {
	basic, ok := l.info.Types[e].Type.(*types.Basic)
	if e.Kind != token.INT || !ok || basic.Info()&types.IsInteger == 0 || basic.Info()&types.IsUntyped != 0 {
		return
	}
	switch parent := parent.(type) {
	case *ast.ArrayType:
		return
	case *ast.KeyValueExpr:
		if parent.Key == e {
			return
		}
	case *ast.CallExpr:
		if made, ok := parent.Fun.(*ast.Ident); ok && made.Name == "make" {
			return
		}
	case *ast.IndexExpr:
		if l.info.Types[parent.Index].IsType() {
			return
		}
	}
	if whole, ok := parent.(ast.Expr); ok && l.info.Types[whole].Value != nil {
		return
	}
	l.add(e, "int", func(inner func(ast.Node) string, on string) string {
		call := strings.Replace(on, ".On(", ".Add["+basic.Name()+"](", 1)
		return strings.TrimSuffix(call, ")") + ", " + inner(e) + ")"
	})
}
