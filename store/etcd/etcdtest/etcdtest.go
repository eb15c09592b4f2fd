// Package etcdtest runs etcd inside a test or benchmark process, so that nothing has to be installed.
//
// Start returns when the members answer. They keep their data in a directory of the caller.
package etcdtest

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"berth/test/lab"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Servers are the members of one etcd.
type Servers struct {
	Endpoints []string // http://HOST:PORT, of each member
	members   []*embed.Etcd
}

// Start starts so many members, on this machine's loopback. Where they need not outlive the machine, synced is false:
// they do not wait for the disk then.
func Start(dir string, members int, synced bool) (*Servers, error) {
	var configs []*embed.Config
	var peers []string
	s := &Servers{}
	for n := range members {
		client, err := freeURL()
		if err != nil {
			return nil, err
		}
		peer, err := freeURL()
		if err != nil {
			return nil, err
		}
		cfg := embed.NewConfig()
		cfg.Name = fmt.Sprintf("m%d", n)
		cfg.Dir = filepath.Join(dir, cfg.Name)
		cfg.UnsafeNoFsync = !synced
		cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
		cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
		cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		configs = append(configs, cfg)
		peers = append(peers, cfg.Name+"="+peer.String())
		s.Endpoints = append(s.Endpoints, client.String())
	}
	for _, cfg := range configs {
		cfg.InitialCluster = strings.Join(peers, ",")
		member, err := embed.StartEtcd(cfg)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.members = append(s.members, member)
	}
	return s, s.ready()
}

func (s *Servers) ready() error {
	late := time.After(4 * time.Minute) // a busy machine takes its time; only what fails takes so long
	for _, member := range s.members {
		select {
		case <-member.Server.ReadyNotify():
		case err := <-member.Err():
			s.Close()
			return err
		case <-late:
			s.Close()
			return errors.New("the embedded etcd does not get ready")
		}
	}
	return nil
}

// Close ends all members and waits for them.
func (s *Servers) Close() {
	for _, member := range s.members {
		member.Close()
		<-member.Server.StopNotify()
	}
}

// freeURL is one of this machine that nobody listens on. A member must know its peers' before any of them listens.
func freeURL() (url.URL, error) {
	address, err := lab.FreeAddress()
	return url.URL{Scheme: "http", Host: address}, err
}
