package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"unicode"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam/cluster"
	"berth/store/etcd"
)

// etcdFlags name the etcd that the hosts of a cluster share, and how to connect to it.
type etcdFlags struct {
	endpoints         []string
	caCert, cert, key string // PEM files
	user              string
	passwordFile      string
	prefix            string
}

// storeEtcd is the value of --store for etcd.
const storeEtcd = "etcd"

// The names of the flags.
const (
	flagEtcdEndpoints    = "etcd-endpoints"
	flagEtcdCACert       = "etcd-cacert"
	flagEtcdCert         = "etcd-cert"
	flagEtcdKey          = "etcd-key"
	flagEtcdUser         = "etcd-user"
	flagEtcdPasswordFile = "etcd-password-file"
	flagEtcdPrefix       = "etcd-prefix"

	defaultEtcdPrefix = "berth/"
)

func (e *etcdFlags) flags() cli.Flags {
	e.prefix = defaultEtcdPrefix
	return cli.Flags{
		cli.Flag(&e.endpoints, flagEtcdEndpoints,
			"`URLs` of etcd's members, separated by commas: http://HOST:PORT or https://HOST:PORT").Split().Words(),
		cli.Flag(&e.caCert, flagEtcdCACert, "CA `file` for etcd (default: the system's CAs)").Files(),
		cli.Flag(&e.cert, flagEtcdCert, "client certificate `file` for etcd").Files(),
		cli.Flag(&e.key, flagEtcdKey, "key `file` of the client certificate").Files(),
		cli.Flag(&e.user, flagEtcdUser, "user `name` for etcd").Words(),
		cli.Flag(&e.passwordFile, flagEtcdPasswordFile, "`file` with the password of the etcd user").Files(),
		cli.Flag(&e.prefix, flagEtcdPrefix,
			"`prefix` of all keys in etcd; another prefix is another cluster").Words(),
	}
}

// unused refuses the flags if the store is not etcd, because a user would believe that addresses are shared.
func (e *etcdFlags) unused(store string) error {
	for _, f := range []struct{ name, value string }{
		{flagEtcdEndpoints, strings.Join(e.endpoints, ",")}, {flagEtcdCACert, e.caCert}, {flagEtcdCert, e.cert},
		{flagEtcdKey, e.key},
		{flagEtcdUser, e.user}, {flagEtcdPasswordFile, e.passwordFile},
		{flagEtcdPrefix, strings.TrimPrefix(e.prefix, defaultEtcdPrefix)},
	} {
		if f.value != "" {
			return fmt.Errorf("--%s works only with --store etcd, but the store is %s: give --store etcd, or leave "+
				"out --%s", f.name, store, f.name)
		}
	}
	return nil
}

// check refuses invalid values.
func (e *etcdFlags) check() error {
	if len(e.endpoints) == 0 {
		return fmt.Errorf("--store etcd needs --%s, the URLs of etcd's members, such as "+
			"http://10.0.0.11:2379,http://10.0.0.12:2379", flagEtcdEndpoints)
	}
	secure := strings.HasPrefix(e.endpoints[0], "https:")
	for _, endpoint := range e.endpoints {
		if err := checkEndpoint(endpoint); err != nil {
			return fmt.Errorf("--%s: %w", flagEtcdEndpoints, err)
		}
		if strings.HasPrefix(endpoint, "https:") != secure {
			return fmt.Errorf("--%s has both http:// and https://: use the same in all URLs",
				flagEtcdEndpoints)
		}
	}
	switch {
	case !secure && (e.caCert != "" || e.cert != "" || e.key != ""):
		return fmt.Errorf("--%s, --%s and --%s are for TLS, but the URLs of the endpoints are http://: write https://",
			flagEtcdCACert, flagEtcdCert, flagEtcdKey)
	case e.cert != "" && e.key == "":
		return fmt.Errorf("--%s is given without --%s, the file with its key", flagEtcdCert, flagEtcdKey)
	case e.key != "" && e.cert == "":
		return fmt.Errorf("--%s is given without --%s, the file with the certificate", flagEtcdKey, flagEtcdCert)
	case e.user != "" && e.passwordFile == "":
		return fmt.Errorf("--%s is given without --%s, the file with the user's password", flagEtcdUser,
			flagEtcdPasswordFile)
	case e.passwordFile != "" && e.user == "":
		return fmt.Errorf("--%s is given without --%s, the user whose password it is", flagEtcdPasswordFile,
			flagEtcdUser)
	}
	if e.prefix == "/" || !strings.HasSuffix(e.prefix, "/") ||
		strings.ContainsFunc(e.prefix, func(r rune) bool { return !unicode.IsGraphic(r) || r == ' ' }) {
		return fmt.Errorf("--%s is %q; it must be a word that ends with a slash, such as %s", flagEtcdPrefix, e.prefix,
			defaultEtcdPrefix)
	}
	return nil
}

func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case endpoint == "":
		return errors.New("one of the URLs is empty: write each as http://HOST:PORT, separated by commas")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q does not begin with http:// or https://: write http://HOST:PORT, or https://HOST:PORT "+
			"where etcd speaks TLS", endpoint)
	case u.User != nil:
		return fmt.Errorf("give the user with --%s, and the password with --%s, not in a URL", flagEtcdUser,
			flagEtcdPasswordFile)
	case u.Hostname() == "" || u.Port() == "":
		return fmt.Errorf("%q names no host and port: write %s://HOST:2379", endpoint, u.Scheme)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q has text after the port: write %s://%s", endpoint, u.Scheme, u.Host)
	}
	return nil
}

// config reads the named files. So a missing or wrong file is reported when the daemon starts, and not when etcd is
// next reachable.
func (e *etcdFlags) config() (cfg etcd.Config, err error) {
	cfg = etcd.Config{CACert: e.caCert, Cert: e.cert, Key: e.key, User: e.user, Prefix: e.prefix,
		Bundle: cluster.Bundled()}
	for _, endpoint := range e.endpoints {
		cfg.Endpoints = append(cfg.Endpoints, strings.TrimSuffix(endpoint, "/"))
	}
	if e.caCert != "" {
		pem, err := os.ReadFile(e.caCert)
		if err != nil {
			return cfg, fmt.Errorf("--%s: %w", flagEtcdCACert, err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return cfg, fmt.Errorf("--%s: %s has no certificate in PEM", flagEtcdCACert, e.caCert)
		}
	}
	if e.cert != "" {
		if _, err := tls.LoadX509KeyPair(e.cert, e.key); err != nil {
			return cfg, fmt.Errorf("--%s and --%s: %w", flagEtcdCert, flagEtcdKey, err)
		}
	}
	if e.passwordFile != "" {
		if cfg.Password, err = readPassword(e.passwordFile); err != nil {
			return cfg, fmt.Errorf("--%s: %w", flagEtcdPasswordFile, err)
		}
	}
	return cfg, nil
}

// readPassword reads a password from a file that is not readable by everybody.
func readPassword(path string) (string, error) {
	password, err := api.ReadSecret(path)
	if err == nil && password == "" {
		err = fmt.Errorf("%s must contain only the password, on one line", path)
	}
	return password, err
}
