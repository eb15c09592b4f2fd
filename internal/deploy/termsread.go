package deploy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// The keys of an x-berth.
const (
	keyUpdate      = "update"
	keyCanaries    = "canaries"
	keyMaxInFlight = "max_in_flight" // a number, or a percentage of the replicas: 25%
	keyCanaryWatch = "canary_watch"
	keyWatch       = "watch"
	keyOrder       = "order"
	keyAddresses   = "addresses"   // a list
	keyElastic     = "elastic"     // auto, or an address
	keyEgressOnly  = "egress_only" // true or false
	keyWorker      = "worker"      // true or false
	keyWorkers     = "workers"     // a number, at the top of the file
	keyDrain       = "drain"       // command, timeout
	keySnapshot    = "snapshot"    // command, timeout
	keyCommand     = "command"     // a list
	keyTimeout     = "timeout"
)

// The orders in which a replica is replaced.
const (
	stopFirst  = "stop-first"
	startFirst = "start-first"
)

// The default time limits of hooks.
const (
	drainTimeout    = 30 * time.Second
	snapshotTimeout = 10 * time.Minute
)

// reader reads an x-berth. It reports a wrong key and ignores it.
type reader struct {
	project *Project
	said    *said
	found   *problems
}

// read reads the x-berth at a path from the extensions there.
func (p *Project) read(at path, extensions map[string]any, found *problems) *said {
	r := &reader{project: p, said: &said{at: at, lines: map[string]path{}}, found: found}
	value, there := extensions[extension]
	if !there || value == nil {
		return r.said
	}
	s := r.said
	r.mapping(at, value, map[string]func(path, any){
		keyUpdate:     r.update,
		keyAddresses:  func(at path, v any) { s.addresses = r.addresses(at, v) },
		keyElastic:    func(at path, v any) { s.elastic = r.elastic(at, v) },
		keyEgressOnly: func(at path, v any) { s.egressOnly = r.truth(at, v) },
		keyWorker:     func(at path, v any) { s.worker = r.truth(at, v) },
		keyWorkers:    func(at path, v any) { s.workers = r.count(at, v, 1) },
		keyDrain:      func(at path, v any) { s.drain = r.hook(at, v, drainTimeout) },
		keySnapshot:   func(at path, v any) { s.snap = r.hook(at, v, snapshotTimeout) },
	})
	return s
}

func (r *reader) refuse(at path, format string, args ...any) {
	r.found.add(r.project.problem(at, "%s "+format, append([]any{at}, args...)...))
}

// mapping calls the function of each key, and refuses unknown keys.
func (r *reader) mapping(at path, value any, known map[string]func(path, any)) {
	names := slices.Sorted(maps.Keys(known))
	keys, is := value.(map[string]any)
	if !is {
		r.refuse(at, "is not a mapping; write a mapping with the keys %s", InWords(names))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		read, there := known[key]
		if !there {
			r.refuse(at.with(key), "is not a known key; %s can have %s", at[len(at)-1], InWords(names))
			continue
		}
		r.said.lines[strings.Join(at.with(key)[len(r.said.at):], ".")] = at.with(key)
		read(at.with(key), keys[key])
	}
}

// InWords joins a list for a sentence: a, b and c.
func InWords(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

func (r *reader) update(at path, value any) {
	s := r.said
	r.mapping(at, value, map[string]func(path, any){
		keyCanaries:    func(at path, v any) { s.canaries = r.count(at, v, 0) },
		keyMaxInFlight: func(at path, v any) { s.maxInFlight = r.share(at, v) },
		keyCanaryWatch: func(at path, v any) { s.canaryWatch = r.span(at, v) },
		keyWatch:       func(at path, v any) { s.watch = r.span(at, v) },
		keyOrder:       func(at path, v any) { s.startFirst = r.order(at, v) },
	})
}

// count reads a number. A number from a variable is a text.
func (r *reader) count(at path, value any, least int) *int {
	n, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil || n < least || n > maxReplicas {
		r.refuse(at, "is %v; write a number from %d to %d", value, least, maxReplicas)
		return nil
	}
	return &n
}

func (r *reader) share(at path, value any) *share {
	text := fmt.Sprint(value)
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > maxReplicas || percent && n > 100 {
		r.refuse(at, "is %v; write a number of replicas, or a part of them such as 25%%", value)
		return nil
	}
	return &share{n, percent}
}

// span reads a minimum and maximum time, such as 1s-60s, or in BOSH's form in milliseconds.
func (r *reader) span(at path, value any) *Span {
	least, most, _ := strings.Cut(fmt.Sprint(value), "-")
	from, fromErr := length(least)
	to, toErr := length(most)
	if fromErr != nil || toErr != nil || from < 0 || to < from || to == 0 {
		r.refuse(at, "is %v; write the least and the most, such as 1s-60s", value)
		return nil
	}
	return &Span{from, to}
}

func length(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if ms, err := strconv.Atoi(text); err == nil {
		return time.Duration(ms) * time.Millisecond, nil
	}
	return time.ParseDuration(text)
}

func (r *reader) order(at path, value any) *bool {
	if value != stopFirst && value != startFirst {
		r.refuse(at, "is %v; write %s or %s", value, stopFirst, startFirst)
		return nil
	}
	first := value == startFirst
	return &first
}

func (r *reader) truth(at path, value any) *bool {
	truth, err := ipam.ParseBool(fmt.Sprint(value)) // a variable's value is a text
	if err != nil {
		r.refuse(at, "is %v; write true or false", value)
		return nil
	}
	return &truth
}

// list reads a list of texts.
func (r *reader) list(at path, value any, what string) (all []string) {
	elements, is := value.([]any)
	for _, one := range elements {
		text, isText := one.(string)
		is = is && isText && text != ""
		all = append(all, text)
	}
	if !is || len(all) == 0 {
		r.refuse(at, "is %v; write a list of %s", value, what)
		return nil
	}
	return all
}

func (r *reader) addresses(at path, value any) (all []netip.Addr) {
	for i, text := range r.list(at, value, "addresses, one for each replica") {
		one := at.with(strconv.Itoa(i))
		addr, err := netip.ParseAddr(text)
		switch {
		case err != nil || addr.Zone() != "" || addr.Is4In6():
			r.refuse(one, "is %v; write an IPv4 or an IPv6 address", text)
		case slices.Contains(all, addr):
			r.refuse(one, "is %v, which is in the list already", text)
		}
		all = append(all, addr)
	}
	return all
}

func (r *reader) elastic(at path, value any) *netip.Addr {
	if value == "auto" {
		return &netip.Addr{}
	}
	addr, err := netip.ParseAddr(fmt.Sprint(value))
	if err != nil || addr.Zone() != "" || addr.Is4In6() {
		r.refuse(at, "is %v; write auto, or an elastic address", value)
		return nil
	}
	return &addr
}

// hook reads a command and its time limit.
func (r *reader) hook(at path, value any, timeout time.Duration) *Hook {
	h := &Hook{Timeout: timeout}
	r.mapping(at, value, map[string]func(path, any){
		keyCommand: func(at path, v any) { h.Command = r.list(at, v, "words, the first of which is the program") },
		keyTimeout: func(at path, v any) {
			d, err := time.ParseDuration(fmt.Sprint(v))
			if err != nil || d <= 0 {
				r.refuse(at, "is %v; write how long the command may take, such as 30s", v)
				return
			}
			h.Timeout = d
		},
	})
	if keys, is := value.(map[string]any); is && keys[keyCommand] == nil {
		r.refuse(at, "has no %s; write {%s: [PROGRAM, ARGUMENT]}", keyCommand, keyCommand)
	}
	return h
}
