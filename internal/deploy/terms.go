package deploy

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// extension is the key of Berth's own settings: at a service, or at the top of a file for all services. The service's
// keys take precedence.
const extension = "x-berth"

// said is the content of one x-berth. Fields that are nil or empty are not set.
type said struct {
	at path

	canaries           *int
	maxInFlight        *share
	canaryWatch, watch *Span
	startFirst         *bool

	addresses   []netip.Addr // of the replicas
	elastic     *netip.Addr  // zero: any address of the account, one per replica
	egressOnly  *bool
	worker      *bool
	workers     *int // that run at the same time
	drain, snap *Hook

	lines map[string]path // the paths of its keys by name, such as update.order
}

// share is a number or a percentage of the replicas.
type share struct {
	count   int
	percent bool
}

// of returns the number for a number of replicas, at least 1.
func (s share) of(replicas int) int {
	if s.percent {
		return max(1, replicas*s.count/100)
	}
	return s.count
}

// terms are the deploy settings of a service.
type terms struct {
	said
	update Update
}

// terms reads the settings of all services, and how many workers run at the same time. It reports all problems.
func (p *Project) terms(found *problems) (all map[string]*terms, workers int) {
	top := p.read(path{extension}, p.compose.Extensions, found)
	if top.addresses != nil {
		found.add(p.problem(top.at.with(keyAddresses), "%s are for the replicas of one service; write them in the %s "+
			"of that service",
			top.at.with(keyAddresses), extension))
		top.addresses = nil
	}
	all = map[string]*terms{}
	for _, name := range p.services() {
		service := p.compose.Services[name]
		own := p.read(path{"services", name, extension}, service.Extensions, found)
		t := &terms{said: own.over(top)}
		t.update = p.updateOf(&service, &t.said)
		all[name] = t
		p.checkTerms(&service, t, found)
		if own.workers != nil {
			found.add(p.problem(own.at.with(keyWorkers), "%s is the number of workers that run at once; write it in "+
				"the %s at the top of the file", own.at.with(keyWorkers), extension))
		}
	}
	if top.workers == nil {
		return all, 1
	}
	return all, *top.workers
}

// over combines the settings of a service with those at the top of the file.
func (s *said) over(top *said) said {
	both := *s
	both.canaries = first(s.canaries, top.canaries)
	both.maxInFlight = first(s.maxInFlight, top.maxInFlight)
	both.canaryWatch = first(s.canaryWatch, top.canaryWatch)
	both.watch = first(s.watch, top.watch)
	both.startFirst = first(s.startFirst, top.startFirst)
	both.elastic = first(s.elastic, top.elastic)
	both.egressOnly = first(s.egressOnly, top.egressOnly)
	both.worker = first(s.worker, top.worker)
	both.drain = first(s.drain, top.drain)
	both.snap = first(s.snap, top.snap)
	both.lines = maps.Clone(top.lines)
	maps.Copy(both.lines, s.lines)
	return both
}

func first[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// checkTerms refuses settings that make no sense for the service.
func (p *Project) checkTerms(service *types.ServiceConfig, t *terms, found *problems) {
	replicas := service.GetScale()
	if t.elastic != nil && t.elastic.IsValid() && replicas > 1 {
		at := t.lines[keyElastic]
		found.add(p.problem(at, "%s is one address, but services.%s has %d replicas; write auto, which gives each "+
			"replica its own address",
			at, service.Name, replicas))
	}
	if t.egressOnly != nil && t.elastic == nil {
		at := t.lines[keyEgressOnly]
		found.add(p.problem(at, "%s needs an elastic address, but services.%s has none; write %s: auto, or "+
			"%s: ADDRESS beside it", at, service.Name, keyElastic, keyElastic))
	}
}

// elasticOf returns a service's wish for elastic addresses, or nil.
func (t *terms) elasticOf() *elasticWish {
	if t.elastic == nil {
		return nil
	}
	return &elasticWish{address: *t.elastic, egressOnly: t.egressOnly != nil && *t.egressOnly}
}

// isWorker reports whether a service runs to its end in each deploy.
func (t *terms) isWorker() bool { return t.worker != nil && *t.worker }

// updateOf returns how a service is updated: by x-berth, or else by Swarm's deploy.update_config, or else by the
// default.
func (p *Project) updateOf(service *types.ServiceConfig, s *said) Update {
	u := defaultUpdate()
	if service.Deploy != nil && service.Deploy.UpdateConfig != nil {
		says := service.Deploy.UpdateConfig
		if says.Parallelism != nil {
			if u.MaxInFlight = int(*says.Parallelism); u.MaxInFlight == 0 { // Swarm's value for all at once
				u.MaxInFlight = max(1, service.GetScale())
			}
		}
		if least := time.Duration(says.Monitor); least > 0 {
			u.Watch = Span{least, max(least, u.Watch.Most)}
			u.CanaryWatch = u.Watch
		}
		u.StartFirst = strings.EqualFold(says.Order, startFirst)
	}
	if s.canaries != nil {
		u.Canaries = *s.canaries
	}
	if s.maxInFlight != nil {
		u.MaxInFlight = s.maxInFlight.of(service.GetScale())
	}
	if s.watch != nil {
		u.Watch = *s.watch
	}
	if s.canaryWatch != nil {
		u.CanaryWatch = *s.canaryWatch
	}
	if s.startFirst != nil {
		u.StartFirst = *s.startFirst
	}
	return u
}

// checkStartFirst refuses start-first if two containers of a replica would conflict.
func (p *Plan) checkStartFirst(service *types.ServiceConfig, found *problems) {
	t := p.terms[service.Name]
	if !t.update.StartFirst || t.isWorker() {
		return
	}
	at, there := t.lines[keyUpdate+"."+keyOrder]
	if !there {
		at = path{"services", service.Name, "deploy", "update_config", "order"}
	}
	refuse := func(format string, args ...any) {
		args = append([]any{at, startFirst, service.Name}, args...)
		found.add(p.project.problem(at, "%s is %s, and services.%s "+format+"; write "+stopFirst+" instead", args...))
	}
	if service.ContainerName != "" {
		refuse("has the container_name %s, which only one container at a time can have", service.ContainerName)
	}
	for _, port := range service.Ports {
		if port.Published != "" {
			refuse("publishes the port %s of the host, which only one container at a time can have", port.Published)
			break
		}
	}
	if mounts := p.project.mounts(service); len(mounts) > 0 && service.GetScale() == 1 {
		refuse("has one replica with the volume %s, to which two containers would write at once", mounts[0].Key)
	}
	p.checkSecond(service, refuse)
}

// checkSecond refuses start-first if the second container of a replica cannot have its own address.
func (p *Plan) checkSecond(service *types.ServiceConfig, refuse func(string, ...any)) {
	fixed := len(p.terms[service.Name].addresses) > 0
	for _, c := range p.claimsOf(service.Name) {
		fixed = fixed || c.given() > 0
	}
	if fixed {
		refuse("has static addresses, which only one container at a time can have")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(service.Networks)) {
		if n := p.networks[key]; n != nil && len(n.named()) == 0 {
			refuse("is on networks.%s, whose subnets the files do not name, so the engine accepts no second address "+
				"for it (write config: [{subnet: %s}] in its ipam to name them)", key, n.subnets[0])
			return
		}
	}
}

// Check returns all problems of a deploy of the plan except those of its addresses. Each is a Problem.
func (p *Plan) Check() error {
	var found problems
	for _, name := range p.project.services() {
		service := p.project.compose.Services[name]
		p.checkStartFirst(&service, &found)
	}
	return found.err()
}
