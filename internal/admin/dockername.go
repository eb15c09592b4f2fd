package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"berth/internal/ipam"
)

// shownNetwork returns a network by its own name or id. If there is none, it returns the network that carries the
// Docker network of this name.
func (s *Server) shownNetwork(ctx context.Context, ref string) (ipam.NetworkInfo, error) {
	n, err := s.cfg.Service.Network(ctx, ref)
	if !errors.Is(err, ipam.ErrNotFound) || s.cfg.Places == nil {
		return n, err
	}
	places, failed := s.cfg.Places(ctx, ref)
	switch {
	case failed != nil:
		return n, failed
	case len(places) == 0:
		return n, err
	}
	var texts []string
	several := false
	for _, p := range places {
		texts = append(texts, fmt.Sprintf("%s (%s, space %s)", p.Network, p.Subnet, p.Space))
		several = several || p.Network != places[0].Network
	}
	if several {
		return n, invalid("Berth has no network %s, and the Docker network of that name uses several of Berth's "+
			"networks: %s; name one of these", ref, strings.Join(texts, ", "))
	}
	return s.cfg.Service.Network(ctx, places[0].Network)
}
