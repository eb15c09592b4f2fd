package apidoc

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"go.yaml.in/yaml/v4"
)

// object is a mapping in the description.
type object = map[string]any

// Describe completes a description. text has everything but the paths, which come from the rows. If a schema in text
// says nothing about a field, its Go type determines it.
func Describe(text []byte, rows []api.Spec) ([]byte, error) {
	var doc struct {
		OpenAPI    string `yaml:"openapi"`
		Info       object
		Servers    []object
		Paths      map[string]object
		Components map[string]object
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	d := describer{doc.Components["schemas"], map[string]bool{}}
	d.edits()
	d.findings()
	doc.Paths = map[string]object{}
	for i := range rows {
		row := &rows[i]
		if doc.Paths[row.Path] == nil {
			doc.Paths[row.Path] = object{}
		}
		doc.Paths[row.Path][strings.ToLower(row.Method)] = d.operation(row)
	}
	return yaml.Marshal(&doc)
}

// sharedFields is the schema of fields that mean the same in each edit. It is removed from the description.
const sharedFields = "EditFields"

// edits completes the schema of each edit, named by its operation, and the schema that joins them.
func (d *describer) edits() {
	shared, _ := d.schemas[sharedFields].(object)
	delete(d.schemas, sharedFields)
	var all []object
	for _, e := range ipam.Edits() {
		name, t := "Edit", reflect.TypeOf(e).Elem()
		for word := range strings.SplitSeq(e.Op(), ".") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		s, _ := d.schemas[name].(object)
		said := object{}
		for _, f := range reflect.VisibleFields(t) {
			field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if is, ok := shared[field]; ok {
				said[field] = is
			} else if f.Type.Kind() == reflect.Bool && api.Omitted(f) {
				said[field] = object{"default": false}
			}
		}
		own, _ := s["properties"].(object)
		for field, is := range own {
			here, was := is.(object), said[field]
			said[field] = here
			if base, _ := was.(object); base["$ref"] == nil && here["$ref"] == nil && here["allOf"] == nil {
				whole := object{}
				maps.Copy(whole, base)
				maps.Copy(whole, here)
				said[field] = whole
			}
		}
		s["properties"] = said
		d.complete(name, s, t)
		s["properties"].(object)["op"] = object{"type": "string", "enum": []string{e.Op()}}
		required, _ := s["required"].([]string)
		s["required"] = append([]string{"op"}, required...)
		all = append(all, ref("schemas", name))
	}
	d.schemas["Edit"].(object)["oneOf"] = all
}

// findings completes the schema of the kinds of findings.
func (d *describer) findings() {
	s, _ := d.schemas["FindingKind"].(object)
	var kinds, meanings []string
	for _, row := range ipam.FindingKinds {
		kinds = append(kinds, string(row.Kind))
		meanings = append(meanings, fmt.Sprintf("%s: %s.", row.Kind, row.Means))
	}
	s["enum"], s["description"] = kinds, strings.Join(meanings, " ")
}

// describer has the schemas of the text, and knows which are complete.
type describer struct {
	schemas object
	whole   map[string]bool
}

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

// roles are the words for the roles.
var roles = map[api.Role]string{"": "admin", api.RoleReadOnly: "read", api.RoleAnybody: "anybody"}

// headers maps header names to the parameters of the text.
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
	s := object{"type": "string"} // lists are comma-separated, and special formats are text
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
		b["description"] = "JSON lines of at most 4 MiB each."
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

// renamed maps types to other names in the description, which has no names that end in Info.
var renamed = map[string]string{"ElasticInfo": "ElasticAddress", "UsageReport": "Usage", "LeasesAs": "LeaseList",
	"Done": "Health", "AppliedInfo": "AppliedElastic", "ClusterStatus": "Cluster", "HeadroomState": "Headroom",
	"DHCPInfo": "DHCPLease", "SubnetPlan": "PlannedSubnet", "PoolPlan": "PlannedPool",
	"ExclusionPlan": "PlannedExclusion", "PlannedNetwork": "PlanNetwork", "PlannedSubnet": "PlanSubnet",
	"PlannedPool": "PlanPool", "PlannedExclusion": "PlanExclusion", "PlannedReservation": "PlanReservation",
	"PlannedAddress": "PlanAddress", "PlannedBand": "PlanBand", "PlannedElastic": "PlanElastic"}

// schema returns the schema of a type: that of the text, or else one derived from the type.
func (d *describer) schema(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return d.schema(t.Elem())
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	name = cmp.Or(renamed[name], strings.TrimSuffix(name, "Info"))
	switch t {
	case reflect.TypeFor[netip.Addr]():
		name = "Address"
	case reflect.TypeFor[ipam.ID]():
		name = "Id"
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "format": "binary"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	}
	if own, ok := d.schemas[name].(object); ok {
		if t.Kind() == reflect.Struct && !t.Implements(textual) {
			d.complete(name, own, t)
		}
		return ref("schemas", name)
	}
	if t.Implements(textual) {
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint64:
		return object{"type": "integer", "format": "int64", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		made := object{}
		d.complete("", made, t)
		return made
	}
	return object{"type": "string"}
}

// textual is the type of values that marshal as text.
var textual = reflect.TypeFor[encoding.TextMarshaler]()

// complete adds to a schema what follows from its type.
func (d *describer) complete(name string, s object, t reflect.Type) {
	if d.whole[name] || s["oneOf"] != nil {
		return
	}
	d.whole[name] = name != ""
	said, _ := s["properties"].(object)
	properties, required := object{}, []string{}
	maps.Copy(properties, said)
	for _, f := range reflect.VisibleFields(t) {
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if field == "" || field == "-" {
			continue
		}
		made := d.schema(f.Type)
		if field == "next" {
			made = ref("schemas", "Cursor")
		}
		own, _ := said[field].(object)
		switch {
		case own["$ref"] != nil || own["allOf"] != nil:
			made = own
		case made["$ref"] != nil && own["type"] == nil && len(own) > 0:
			made = object{"allOf": []object{made}}
			maps.Copy(made, own)
		case own["type"] != nil && made["type"] != own["type"]:
			made = own
		default:
			maps.Copy(made, own)
		}
		properties[field] = made
		if !api.Omitted(f) {
			required = append(required, field)
		}
	}
	s["properties"] = properties
	if _, says := s["required"]; !says && len(required) > 0 {
		s["required"] = required
	}
	if _, says := s["additionalProperties"]; !says {
		s["additionalProperties"] = false
	}
	s["type"] = "object"
}
