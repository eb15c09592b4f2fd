package single

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	"berth/internal/docker"
)

// maxBody is the maximum size of a request in bytes. The description of a container has some kilobytes.
const maxBody = 4 << 20

// object is a JSON object. Fields that are not changed pass through as they are.
type object map[string]json.RawMessage

// in returns an object in a field. It is empty if the field is missing or null.
func (o object) in(field string) (object, error) {
	inner := object{}
	if raw := o[field]; raw != nil && string(raw) != "null" {
		if err := json.Unmarshal(raw, &inner); err != nil {
			return nil, fmt.Errorf("the field %s: %w", field, err)
		}
	}
	return inner, nil
}

// put sets a field.
func (o object) put(field string, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		o[field] = raw
	}
	return err
}

// create forwards the creation of the one container, with its name and addresses.
func (f *Filter) create(w http.ResponseWriter, r *http.Request) {
	body, err := f.described(r)
	if err != nil {
		f.refuseWith(w, err.Error())
		return
	}
	if f.replica.NamePrefix != "" {
		query := r.URL.Query()
		query.Set("name", f.replica.NamePrefix+"_"+query.Get("name"))
		r.URL.RawQuery = query.Encode()
	}
	setBody(r, body)
	rec := &recorder{ResponseWriter: w}
	f.engine.ServeHTTP(rec, r)
	var made struct{ ID string }
	if rec.status == http.StatusCreated && json.Unmarshal(rec.body.Bytes(), &made) == nil {
		f.mu.Lock()
		f.id = made.ID
		f.mu.Unlock()
	}
}

// described returns the changed description of the container, and refuses any other one.
func (f *Filter) described(r *http.Request) ([]byte, error) {
	f.mu.Lock()
	f.made++
	made := f.made
	f.mu.Unlock()
	if made > 1 {
		return nil, fmt.Errorf("Berth makes only one container here, %s, and it is made already", f.replica.title())
	}
	c := object{}
	if err := readBody(r, &c); err != nil {
		return nil, err
	}
	var labels map[string]string
	if raw := c["Labels"]; raw != nil {
		if err := json.Unmarshal(raw, &labels); err != nil {
			return nil, err
		}
	}
	service, number := labels[docker.LabelService], labels[docker.LabelNumber]
	if labels[docker.LabelProject] != f.project || service != f.replica.Service ||
		number != strconv.Itoa(f.replica.Number) || isOneOff(labels) {
		return nil, fmt.Errorf("the container is %s/%s of the project %s; Berth requested %s of %s", service, number,
			labels[docker.LabelProject], f.replica.title(), f.project)
	}
	if f.replica.Hash != "" {
		labels[docker.LabelMade] = f.replica.Hash
		if err := c.put("Labels", labels); err != nil {
			return nil, err
		}
	}
	if err := f.address(c); err != nil {
		return nil, err
	}
	if err := f.takeOver(r.Context(), c); err != nil {
		return nil, err
	}
	return json.Marshal(c)
}

// address sets the addresses on the networks in the description.
func (f *Filter) address(c object) error {
	config, err := c.in("NetworkingConfig")
	if err != nil {
		return err
	}
	endpoints, err := config.in("EndpointsConfig")
	if err != nil {
		return err
	}
	for name := range endpoints {
		one, err := endpoints.in(name)
		if err != nil {
			return err
		}
		if err := f.fix(one, name); err != nil {
			return err
		}
		if err := endpoints.put(name, one); err != nil {
			return err
		}
	}
	if len(endpoints) == 0 {
		return nil
	}
	if err := config.put("EndpointsConfig", endpoints); err != nil {
		return err
	}
	return c.put("NetworkingConfig", config)
}

// fix sets the addresses of an endpoint on a Docker network, if there are any.
func (f *Filter) fix(endpoint object, network string) error {
	for _, on := range f.replica.On {
		if on.Network != network || len(on.Addresses) == 0 {
			continue
		}
		ipam, err := endpoint.in("IPAMConfig")
		if err != nil {
			return err
		}
		for _, addr := range on.Addresses {
			if err := ipam.put(field(addr), addr.String()); err != nil {
				return err
			}
		}
		return endpoint.put("IPAMConfig", ipam)
	}
	return nil
}

func field(addr netip.Addr) string {
	if addr.Is4() {
		return "IPv4Address"
	}
	return "IPv6Address"
}

// connect forwards the connection of the new container to a network, with its addresses.
func (f *Filter) connect(w http.ResponseWriter, r *http.Request, ref string, on bool) {
	c := object{}
	err := readBody(r, &c)
	if err != nil {
		f.refuseWith(w, err.Error())
		return
	}
	var name string
	if err = json.Unmarshal(c["Container"], &name); err == nil {
		name, err = f.idOf(r.Context(), name)
	}
	f.mu.Lock()
	ours := err == nil && name == f.id && f.id != ""
	f.mu.Unlock()
	if err == nil && !ours {
		f.refuse(w, r)
		return
	}
	if err == nil && on {
		err = f.connected(r, ref, c)
	}
	var body []byte
	if err == nil {
		body, err = json.Marshal(c)
	}
	if err != nil {
		f.refuseWith(w, err.Error())
		return
	}
	setBody(r, body)
	f.engine.ServeHTTP(w, r)
}

// connected sets the addresses in a request to connect.
func (f *Filter) connected(r *http.Request, ref string, c object) error {
	var network struct{ Name string }
	if err := f.get(r.Context(), "/networks/"+url.PathEscape(ref), &network); err != nil {
		return err
	}
	endpoint, err := c.in("EndpointConfig")
	if err == nil {
		err = f.fix(endpoint, network.Name)
	}
	if err == nil && len(endpoint) > 0 {
		err = c.put("EndpointConfig", endpoint)
	}
	return err
}

func readBody(r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("cannot read what Compose requests: %w", err)
	}
	return nil
}

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	r.TransferEncoding = nil
}

// recorder records an answer that it forwards.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.body.Write(b)
	return r.ResponseWriter.Write(b)
}
