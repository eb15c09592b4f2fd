package apidoc

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"go.yaml.in/yaml/v4"
)

// object is a mapping of the description.
type object = map[string]any

// Describe completes a description, of which text has all but the paths, by the rows of the table.
func Describe(text []byte, rows []api.Spec) ([]byte, error) {
	var known struct {
		Components struct{ Schemas map[string]yaml.Node }
	}
	if err := yaml.Unmarshal(text, &known); err != nil {
		return nil, err
	}
	d := describer{known.Components.Schemas}
	paths := map[string]object{}
	for i := range rows {
		row := &rows[i]
		if paths[row.Path] == nil {
			paths[row.Path] = object{}
		}
		paths[row.Path][strings.ToLower(row.Method)] = d.operation(row)
	}
	made, err := yaml.Marshal(object{"paths": paths})
	return append(text[:len(text):len(text)], made...), err
}

// describer knows the schemas that have a description of their own.
type describer struct{ schemas map[string]yaml.Node }

func (d *describer) operation(row *api.Spec) object {
	op := object{"operationId": row.Name, "summary": row.Summary, "x-role": roles[row.Role],
		"responses": d.responses(row)}
	if row.Text != "" {
		op["description"] = row.Text
	}
	if row.Account {
		op["x-role-account"] = true
	}
	var parameters []object
	for _, f := range api.FieldsOf(row.Req) {
		switch {
		case f.In == "body":
			op["requestBody"] = d.body(row, f.Type)
		case f.In == "header":
			parameters = append(parameters, ref("parameters", headers[f.Name]))
		case f.In == "query" || strings.Contains(row.Path, "{"+f.Name+"}"):
			parameters = append(parameters, d.parameter(&f))
		}
	}
	if row.Tagged {
		parameters = append(parameters, ref("parameters", "ifNoneMatch"))
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	return op
}

// roles are the words for who may ask.
var roles = map[api.Role]string{"": "admin", api.RoleReadOnly: "read", api.RoleAnybody: "anybody"}

// headers are the parameters of the text that are headers.
var headers = map[string]string{"If-Match": "ifMatch", api.KeyHeader: "idempotencyKey", api.DeployHeader: "deploy"}

func (d *describer) parameter(f *api.Field) object {
	p := object{"name": f.Name, "in": f.In}
	if f.In == "path" || f.Tag.Get("required") != "" {
		p["required"] = true
	}
	for key, tag := range map[string]string{"description": "doc", "example": "example"} {
		if text := f.Tag.Get(tag); text != "" {
			p[key] = text
		}
	}
	s := object{"type": "string"} // lists have commas, and what has a form of its own is a text
	switch {
	case f.Type == reflect.TypeFor[time.Time]():
		s["format"] = "date-time"
	case f.Type == reflect.TypeFor[ipam.ID](), f.Type.Kind() == reflect.Int:
		s = d.schema(f.Type)
	case f.Type.Kind() == reflect.Bool:
		s = object{"type": "boolean", "default": false}
	}
	if text := f.Tag.Get("enum"); text != "" {
		s["enum"] = strings.Split(text, ",")
	}
	if f.Bounded {
		s["minimum"], s["maximum"] = f.Min, f.Max
	}
	if f.Default != "" {
		s["default"] = &yaml.Node{Kind: yaml.ScalarNode, Value: f.Default}
	}
	p["schema"] = s
	return p
}

func (d *describer) body(row *api.Spec, t reflect.Type) object {
	b := object{"required": true, "content": object{api.JSONType: object{"schema": d.schema(t)}}}
	switch row.MaxBody {
	case 0:
	case api.Endless:
		b["content"] = object{api.LinesType: object{"schema": d.schema(t)}}
		b["description"] = "Lines of JSON, each at most 4 MiB."
	default:
		b["description"] = fmt.Sprintf("At most %d MiB.", row.MaxBody>>20)
	}
	return b
}

func (d *describer) responses(row *api.Spec) object {
	content := object{cmp.Or(row.Type, api.JSONType): object{"schema": d.schema(row.Resp)}}
	ok := object{"description": cmp.Or(row.Answer, "The answer."), "content": content}
	all := object{"200": ok}
	if row.Role != api.RoleAnybody {
		all["default"] = ref("responses", "Problem")
	}
	if row.Unready != "" {
		all["503"] = object{"description": row.Unready, "content": content}
	}
	if row.Response != "" {
		all["200"] = ref("responses", row.Response)
	}
	set := object{}
	if row.Tagged {
		set["ETag"] = ref("headers", "ETag")
		all["304"] = ref("responses", "NotModified")
	}
	if row.Resp.Implements(reflect.TypeFor[interface{ NextPage() string }]()) {
		set["Link"] = ref("headers", "Link")
	}
	if len(set) > 0 {
		ok["headers"] = set
	}
	return all
}

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// renamed are the types that have another name in the description, which has none that ends in Info.
var renamed = map[string]string{"ElasticInfo": "ElasticAddress", "UsageReport": "Usage", "SubnetPlan": "PlannedSubnet",
	"LeasesAs": "LeaseList", "Done": "Health"}

// schema is that of a type: its own of the text, else what the type says.
func (d *describer) schema(t reflect.Type) object {
	name, _, _ := strings.Cut(t.Name(), "[")
	name = cmp.Or(renamed[name], strings.TrimSuffix(name, "Info"))
	if _, ok := d.schemas[name]; ok {
		return ref("schemas", name)
	}
	switch t {
	case reflect.TypeFor[netip.Addr]():
		return ref("schemas", "Address")
	case reflect.TypeFor[ipam.ID]():
		return ref("schemas", "Id")
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "format": "binary"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Struct:
		return d.fields(t)
	}
	return object{"type": "string"}
}

func (d *describer) fields(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		if properties[name] = d.schema(f.Type); name == "next" {
			properties[name] = ref("schemas", "Cursor")
		}
		if !api.Omitted(f) {
			required = append(required, name)
		}
	}
	return object{"type": "object", "required": required, "additionalProperties": false, "properties": properties}
}
