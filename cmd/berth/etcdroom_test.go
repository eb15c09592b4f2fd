package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// fill uses up the quota of etcd with keys that are not Berth's.
func (e *scriptEtcd) fill() error {
	return e.ask(func(ctx context.Context, c *clientv3.Client) error {
		for {
			_, err := c.Put(ctx, "others/large", strings.Repeat("x", 200_000))
			if errors.Is(err, rpctypes.ErrNoSpace) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

// makeRoom frees space as a person does: compact, defragment, disarm the alarm.
func (e *scriptEtcd) makeRoom() error {
	return e.ask(func(ctx context.Context, c *clientv3.Client) error {
		got, err := c.Get(ctx, "others/large")
		if err == nil {
			_, err = c.Compact(ctx, got.Header.Revision, clientv3.WithCompactPhysical())
		}
		if err == nil {
			_, err = c.Defragment(ctx, e.url)
		}
		if err == nil {
			_, err = c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
		}
		return err
	})
}

// ask calls an etcd that requires neither TLS nor a user.
func (e *scriptEtcd) ask(fn func(context.Context, *clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.url}, Logger: zap.NewNop(),
		DialTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return fn(ctx, c)
}
