package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/webhook"

	"github.com/sirupsen/logrus"
)

// urlList is the value of --webhook: URLs, repeated or separated by blanks.
type urlList []string

// String implements pflag.Value.
func (l *urlList) String() string { return strings.Join(*l, " ") }

// Type implements pflag.Value.
func (l *urlList) Type() string { return "URL" }

// Set implements pflag.Value. It adds to the list.
func (l *urlList) Set(text string) error {
	all := strings.Fields(text)
	if len(all) == 0 {
		return errors.New("the value is empty: give the URL of a receiver")
	}
	for _, one := range all {
		if _, err := webhook.CheckURL(one); err != nil {
			return err
		}
		if slices.Contains(*l, one) {
			return errors.New("the same URL is given twice")
		}
		*l = append(*l, one)
	}
	return nil
}

// hosts returns the schemes and hosts of the receivers, because the rest of a URL may contain a secret.
func (l *urlList) hosts() string {
	var all []string
	for _, one := range *l {
		if to, err := webhook.CheckURL(one); err == nil {
			all = append(all, to.Scheme+"://"+to.Host)
		}
	}
	return strings.Join(all, " ")
}

// checkWebhooks refuses flags for receivers if there are none.
func (cfg *serveConfig) checkWebhooks() error {
	if len(cfg.webhooks) == 0 && (cfg.webhookSecret != "" || cfg.webhookCA != "") {
		return errors.New("--webhook-secret-file and --webhook-cacert work only with --webhook, which is missing")
	}
	return nil
}

// openWebhooks opens the webhooks, if receivers are given. It returns the function that runs them and the one that
// returns their states.
func (cfg *serveConfig) openWebhooks(ctx context.Context, log *logrus.Entry, st *storage,
	service webhook.Service) (run func(context.Context) error, states func() []api.WebhookState, err error) {
	if len(cfg.webhooks) == 0 {
		return func(context.Context) error { return nil }, nil, nil
	}
	of := webhook.Config{Service: service, URLs: cfg.webhooks, Dir: cfg.state, Host: cfg.host,
		OwnAlone: cfg.store == storeEtcd, StoreID: st.id, Version: version, Log: log}
	if cfg.webhookSecret != "" {
		if of.Secret, err = readWebhookSecret(cfg.webhookSecret); err != nil {
			return nil, nil, fmt.Errorf("--webhook-secret-file: %w", err)
		}
	}
	if of.CAs, err = readWebhookCAs(cfg.webhookCA); err != nil {
		return nil, nil, fmt.Errorf("--webhook-cacert: %w", err)
	}
	hooks, err := webhook.Open(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	return hooks.Run, func() (all []api.WebhookState) {
		for _, s := range hooks.States() {
			all = append(all, api.WebhookState(s))
		}
		return all
	}, nil
}

func readWebhookSecret(path string) (*webhook.Secret, error) {
	text, err := api.ReadSecret(path)
	if err != nil {
		return nil, err
	}
	secret, err := webhook.ParseSecret(text)
	if err != nil {
		return nil, fmt.Errorf("the secret in %s is invalid: %w; `(printf whsec_; head -c 32 /dev/urandom | base64) "+
			"> FILE` writes a valid one", path, err)
	}
	return secret, nil
}

// readWebhookCAs reads the authorities of receivers; nil, the system's, if no file is given.
func readWebhookCAs(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	return api.ReadCAs(path)
}
