package etcd

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"berth/store"
	"berth/test/lab"
)

// refusal opens a store and returns why it is refused. The reason must not be that etcd is away.
func refusal(t *testing.T, cfg Config, words ...string) error {
	t.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = []string{embedded()}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	s, err := Open(context.Background(), cfg)
	switch {
	case err == nil:
		_ = s.Close()
		t.Fatal("it was opened")
	case errors.Is(err, store.ErrAway):
		t.Errorf("refused as if it were away: %v", err)
	}
	for _, w := range append(words, cfg.Endpoints...) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	return err
}

func TestForeign(t *testing.T) {
	t.Parallel()
	c := rawClient(t, embedded())
	put := func(prefix, key, value string) {
		t.Helper()
		if _, err := c.Put(context.Background(), prefix+key, value); err != nil {
			t.Fatal(err)
		}
	}
	about := func(version int) string {
		text, err := json.Marshal(meta{Program: "berth", Version: version, Cluster: strings.Repeat("ab", 16)})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, what := range map[string][2]string{
		"no meta":        {"config/a", "1"},
		"no JSON":        {"meta", "hello"},
		"other JSON":     {"meta", `{"version": 1}`},
		"a newer format": {"meta", about(format + 1)},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := freshPrefix()
			put(prefix, what[0], what[1])
			if err := refusal(t, Config{Prefix: prefix}, prefix); !errors.Is(err, errForeign) {
				t.Error(err)
			}
		})
	}
	prefix, other := freshPrefix(), freshPrefix()
	s := open(t, Config{Prefix: prefix})
	if len(s.Cluster()) != 32 {
		t.Errorf("the cluster's id is %q", s.Cluster())
	}
	if again := open(t, Config{Prefix: strings.TrimSuffix(prefix, "/"),
		Cluster: s.Cluster()}); again.Cluster() != s.Cluster() {
		t.Error("another handle has another cluster")
	}
	wrong := strings.Repeat("0", 32)
	if err := refusal(t, Config{Prefix: prefix, Cluster: wrong}, s.Cluster(), wrong); !errors.Is(err, errForeign) {
		t.Error(err)
	}
	if _, err := Open(context.Background(),
		Config{Endpoints: []string{embedded()}, Prefix: other, Cluster: wrong,
			Timeout: 10 * time.Second}); !errors.Is(err, store.ErrBack) {
		t.Error(err)
	}
	if g, err := c.Get(context.Background(), other, clientv3.WithPrefix()); err != nil || len(g.Kvs) > 0 {
		t.Errorf("a refused Open has left %v (%v)", g.Kvs, err)
	}
}

func TestNotEtcd(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	refusal(t, Config{Endpoints: []string{web.URL}}, "http")
	for _, bad := range []string{"127.0.0.1:2379", "ftp://x", "http://", "http://a b"} {
		refusal(t, Config{Endpoints: []string{bad}}, "http://HOST:PORT")
	}
	if _, err := Open(context.Background(), Config{}); err == nil {
		t.Error("a store without endpoints was opened")
	}
}

// authority signs certificates, and keeps them in dir.
type authority struct {
	lab.Authority
	t   *testing.T
	dir string
}

func newAuthority(t *testing.T, name string) *authority {
	own, err := lab.NewAuthority(name)
	a := &authority{own, t, t.TempDir()}
	lab.Must(t, err, lab.WritePair(own.Certificate, filepath.Join(a.dir, name+".pem"), ""))
	return a
}

// issue writes NAME.pem and NAME.key.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	pair, err := a.Sign(x509.Certificate{Subject: pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	lab.Must(a.t, err, lab.WritePair(pair, cert, key))
	return cert, key
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, stranger := newAuthority(t, "ca"), newAuthority(t, "stranger")
	root, other := filepath.Join(ca.dir, "ca.pem"), filepath.Join(stranger.dir, "stranger.pem")
	cert, key := ca.issue("server")
	secure := func(c *embed.Config) {
		c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
		c.ClientTLSInfo = transport.TLSInfo{CertFile: cert, KeyFile: key, TrustedCAFile: root, ClientCertAuth: true,
			Logger: zap.NewNop()}
	}
	server := []string{otherEmbedded(t, secure)}
	cert, key = ca.issue("client")
	strangeCert, strangeKey := stranger.issue("client")

	s := open(t, Config{Endpoints: server, CACert: root, Cert: cert, Key: key, Timeout: 30 * time.Second})
	update(t, s, putting("a", "1"))
	if got := value(t, s, "a"); got != "1" {
		t.Errorf("a is %s", got)
	}
	refusal(t, Config{Endpoints: server, CACert: other, Cert: cert, Key: key}, "x509", "--etcd-cacert")
	refusal(t, Config{Endpoints: server, CACert: other, Cert: cert, Key: key, User: "berth", Password: "secret"},
		"x509", "--etcd-cacert")
	refusal(t, Config{Endpoints: server}, "x509", "--etcd-cacert")
	refusal(t, Config{Endpoints: server, CACert: root}, "tls", "--etcd-cert")
	refusal(t, Config{Endpoints: server, CACert: root, Cert: strangeCert, Key: strangeKey}, "tls", "--etcd-cert")
	if _, err := Open(context.Background(),
		Config{Endpoints: []string{embedded()}, CACert: root, Cert: cert, Key: key,
			Cluster: strings.Repeat("0", 32)}); !errors.Is(err, store.ErrBack) {
		t.Errorf("http is not taken at its word: %v", err)
	}
	refusal(t, Config{Endpoints: []string{"https" + embedded()[len("http"):]}, CACert: root}, "https")
	refusal(t, Config{Endpoints: []string{"http" + server[0][len("https"):]}, Timeout: 2 * time.Second}, "wants TLS")
	for _, cfg := range []Config{{Cert: cert}, {Key: key}, {CACert: "/nowhere"},
		{CACert: root, Cert: cert, Key: strangeKey}} {
		cfg.Endpoints = server
		if s, err := Open(context.Background(), cfg); err == nil || errors.Is(err, store.ErrAway) {
			t.Errorf("%+v: %v, %v", cfg, s, err)
		}
	}
}

func TestUserAndPassword(t *testing.T) {
	t.Parallel()
	server := []string{otherEmbedded(t, func(c *embed.Config) { c.BcryptCost = 4 })}
	c := rawClient(t, server[0])
	ctx := context.Background()
	prefix := freshPrefix()
	may := func(role, prefix string) {
		t.Helper()
		_, err := c.RoleAdd(ctx, role)
		if err == nil {
			_, err = c.RoleGrantPermission(ctx, role, prefix, clientv3.GetPrefixRangeEnd(prefix),
				clientv3.PermissionType(clientv3.PermReadWrite))
		}
		if err == nil {
			_, err = c.UserAdd(ctx, role, "secret of "+role)
		}
		if err == nil {
			_, err = c.UserGrantRole(ctx, role, role)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	may("berth", prefix)
	may("stranger", "elsewhere/")
	_, err := c.UserAdd(ctx, "root", "root")
	if err == nil {
		_, err = c.UserGrantRole(ctx, "root", "root")
	}
	if err == nil {
		_, err = c.AuthEnable(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Endpoints: server, Prefix: prefix, User: "berth", Password: "secret of berth",
		Timeout: 30 * time.Second}
	s, other := open(t, cfg), open(t, cfg)
	s.Announce("a", nil)
	update(t, s, many(5000/2, 1, "a"))
	update(t, s, many(300, 10000, "b"))
	if got := len(everything(t, other)); got != 2500 {
		t.Errorf("%d records", got)
	}
	eventually(t, "who is present", func() bool { _, ok := other.Present()["a"]; return ok })

	bad := cfg
	bad.Password = "wrong"
	refusal(t, bad, `"berth"`, "--etcd-password-file")
	bad.User, bad.Password = "nobody", "wrong"
	refusal(t, bad, `"nobody"`, "--etcd-user")
	bad.User, bad.Password = "stranger", "secret of stranger"
	refusal(t, bad, `"stranger"`, prefix)
	bad.User, bad.Password = "", ""
	refusal(t, bad, "wants a user", "--etcd-user")

	// If a running handle loses a permission, nothing is lost: it behaves as if etcd were away, and reports the
	// reason.
	root, err := clientv3.New(clientv3.Config{Endpoints: server, Username: "root", Password: "root",
		Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.UserRevokeRole(ctx, "berth", "berth"); err != nil {
		t.Fatal(err)
	}
	err = s.Update(ctx, putting("a", "1"))
	if !errors.Is(err, store.ErrAway) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%v", err)
	}
	if _, err := root.UserGrantRole(ctx, "berth", "berth"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "updates are taken again", func() bool { return s.Update(ctx, putting("a", "1")) == nil })
}
