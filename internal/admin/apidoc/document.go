package apidoc

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

// group is the operations with the same first segment of the path.
type group struct {
	Name       string
	Operations []operation
}

// operation is one method of one path.
type operation struct {
	Method, Path string
	Is           object
}

// groups returns the operations of a description by group, first those outside /v1/.
func groups(doc object) (all []group) {
	paths, _ := doc["paths"].(object)
	for _, path := range sorted(paths) {
		name, versioned := strings.CutPrefix(path, "/v1/")
		name, _, _ = strings.Cut(name, "/")
		if !versioned {
			name = "probes and descriptions"
		}
		if len(all) == 0 || all[len(all)-1].Name != name {
			all = append(all, group{Name: name})
		}
		methods, _ := paths[path].(object)
		for _, method := range sorted(methods) {
			is, _ := methods[method].(object)
			to := &all[len(all)-1]
			to.Operations = append(to.Operations, operation{strings.ToUpper(method), path, is})
		}
	}
	return all
}

func sorted(of object) []string {
	var keys []string
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// facts are the keywords of a schema with a plain value, and how the page words them.
var facts = []struct{ key, words string }{{"format", "%v"}, {"pattern", "matches %v"}, {"minimum", "at least %v"},
	{"maximum", "at most %v"}, {"minLength", "length at least %v"}, {"maxLength", "length at most %v"},
	{"minItems", "at least %v entries"}, {"maxItems", "at most %v entries"}, {"default", "default %v"},
	{"example", "example %v"}}

// functions returns the functions of the template.
func functions(doc object) template.FuncMap {
	return template.FuncMap{
		// follow resolves a reference to a parameter, a header or an answer
		"follow": func(n object) (object, error) {
			to, _ := n["$ref"].(string)
			if to == "" {
				return n, nil
			}
			at := doc
			for step := range strings.SplitSeq(strings.TrimPrefix(to, "#/"), "/") {
				at, _ = at[step].(object)
			}
			if at == nil {
				return nil, fmt.Errorf("there is no %s", to)
			}
			return at, nil
		},
		"last": func(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] },
		"paragraphs": func(text any) []string {
			if text == nil {
				return nil
			}
			return strings.Split(strings.TrimSpace(fmt.Sprint(text)), "\n")
		},
		"facts": func(schema object) (all []string) {
			for _, f := range facts {
				switch value := schema[f.key].(type) {
				case nil:
				case string, bool, int, float64:
					if value == "" {
						value = `""`
					}
					all = append(all, fmt.Sprintf(f.words, value))
				default:
					all = append(all, fmt.Sprintf(f.words, indented(value)))
				}
			}
			if schema["nullable"] == true {
				all = append(all, "or null")
			}
			return all
		},
		// others returns the schema of an object's unnamed fields
		"others": func(schema object) object {
			others, _ := schema["additionalProperties"].(object)
			return others
		},
		"requires": func(schema object, field string) bool {
			required, _ := schema["required"].([]any)
			return slices.Contains(required, any(field))
		},
		"indented": indented,
	}
}

func indented(value any) string {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
