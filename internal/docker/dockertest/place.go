package dockertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Front is the name of the network of a Place.
const Front = "front"

// Refused is a refusal that a retry cannot change.
const Refused = "user configured subnets only"

// Place is the network Front. Its containers can be disconnected and reconnected. A container gets the address
// that it asks for, or the expected one, or a free one from 10.9.0.200 on.
type Place struct {
	Containers []*Container
	Expect     func(name string) string // the address expected for a container; nil: none
	Before     func(call string)        // called before each move, with the engine's mutex held
	Refuse     map[string][]string      // by move, such as "on web": the next answers
	Lost       map[string]int           // by move: how many are made, but answered with an error
	Gone       bool                     // the network was removed
	No6        bool                     // it gives no IPv6 addresses
	Moves      []string                 // "off NAME" and "on NAME", in order, with the refused ones
	MostOff    int                      // the most containers that were off at once
}

// Container is a container on a Place.
type Container struct {
	ID, Name string
	MAC      string // in its configuration; empty: none
	Stopped  bool
	Labels   Object
	On       Object // its settings; nil: it is disconnected
}

func (p *Place) of(id string) *Container {
	i := slices.IndexFunc(p.Containers, func(c *Container) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return p.Containers[i]
}

// shown returns the container's inspection in a version of the API (1.N). From 1.52 on its configuration has no MAC.
func (c *Container) shown(version int) Object {
	config := Object{"Labels": c.Labels}
	if version < 52 {
		config["MacAddress"] = c.MAC
	}
	networks := Object{}
	if c.On != nil {
		networks[Front] = c.On
	}
	return Object{"Id": c.ID, "Name": "/" + c.Name, "State": Object{"Running": !c.Stopped},
		"HostConfig": Object{"NetworkMode": Front}, "Config": config,
		"NetworkSettings": Object{"Networks": networks}}
}

// move connects or disconnects a container, by a version of the API.
func (e *Engine) move(w http.ResponseWriter, r *http.Request, call string, version int) {
	var body struct {
		Container      string
		EndpointConfig Object
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	e.Lock()
	defer e.Unlock()
	p := &e.Place
	c := p.of(body.Container)
	var err error
	switch {
	case call == "/networks/"+Front+"/disconnect" && c != nil && c.On != nil:
		err = p.made("off "+c.Name, func() error { c.On = nil; return nil })
	case call == "/networks/"+Front+"/connect" && c != nil && c.On == nil && !p.Gone:
		err = p.made("on "+c.Name, func() error {
			if err := p.connect(c, body.EndpointConfig); err != nil {
				return err
			}
			c.takeMAC(body.EndpointConfig, version, e.API)
			return nil
		})
	case e.connect(path.Base(path.Dir(call)), body.Container, path.Base(call) == "connect", body.EndpointConfig):
	default:
		Reply(w, http.StatusNotFound, "there is none")
		return
	}
	if err != nil {
		Reply(w, http.StatusInternalServerError, err.Error())
		return
	}
	Reply(w, http.StatusOK, Object{})
}

// made makes a move, unless the test refuses it.
func (p *Place) made(call string, move func() error) (err error) {
	if p.Before != nil {
		p.Before(call)
	}
	p.Moves = append(p.Moves, call)
	if texts := p.Refuse[call]; len(texts) > 0 {
		p.Refuse[call] = texts[1:]
		return errors.New(texts[0])
	}
	err = move()
	off := 0
	for _, c := range p.Containers {
		if c.On == nil {
			off++
		}
	}
	p.MostOff = max(p.MostOff, off)
	if p.Lost[call] > 0 {
		p.Lost[call]--
		err = errors.New("it hurts")
	}
	return err
}

// connect does what Docker 20.10 does with settings.
func (p *Place) connect(c *Container, settings Object) error {
	asks, _ := settings["IPAMConfig"].(Object)
	four, _ := asks["IPv4Address"].(string)
	if four != "" && !c.Stopped && p.inUse(four) {
		return fmt.Errorf("%s is in use: %s", four, Refused)
	}
	if four == "" && p.Expect != nil {
		if expected := p.Expect(c.Name); !p.inUse(expected) {
			four = expected
		}
	}
	for n := 200; four == ""; n++ {
		if free := fmt.Sprintf("10.9.0.%d", n); !p.inUse(free) {
			four = free
		}
	}
	c.On = maps.Clone(settings)
	aliases, _ := settings["Aliases"].([]any)
	if c.On["Aliases"] = append(aliases, c.ID[:12]); !c.Stopped {
		c.On["IPAddress"], c.On["EndpointID"] = four, "e2"
		if six, asked := asks["IPv6Address"]; asked && !p.No6 {
			c.On["GlobalIPv6Address"] = six
		}
	}
	return nil
}

// takeMAC changes the configured MAC as engines do: before 25.0 (API 1.44) it is the container's, and later the
// endpoint's. A new endpoint has one only by API 1.54.
func (c *Container) takeMAC(settings Object, version, newest int) {
	switch {
	case newest < 44:
	case version < 54:
		c.MAC = ""
	default:
		c.MAC, _ = settings["MacAddress"].(string)
	}
}

func (p *Place) inUse(addr string) bool {
	return slices.ContainsFunc(p.Containers, func(c *Container) bool { return c.On["IPAddress"] == addr })
}

// Last is the last byte of a container's address; 0: it has none.
func (c *Container) Last() (n int) {
	text, _ := c.On["IPAddress"].(string)
	_, _ = fmt.Sscan(text[strings.LastIndexByte(text, '.')+1:], &n)
	return n
}
