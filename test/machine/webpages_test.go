//go:build machine

package machine

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"

	"berth/test/lab"
)

// authority is a certificate authority on a machine.
type authority struct {
	*Harness
	lab.Authority
	pem []byte
}

// authority makes a certificate authority.
func (h *Harness) authority(name string) *authority {
	own, err := lab.NewAuthority(name)
	h.must(err)
	return &authority{h, own, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Leaf.Raw})}
}

// hands puts a certificate and its key onto the machine, readable only by root.
func (a *authority) hands(name string, c *x509.Certificate) {
	a.Helper()
	pair, err := a.Sign(*c)
	a.must(err)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	a.must(err)
	a.writes(name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})), 0o644)
	a.writes(name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})), 0o600)
}

// docs/access.md: the daemon listens on the network. Another machine runs the command with the authority and a
// token made for it.
func (h *Harness) accessPage() {
	blocks := h.shows("docs/access.md", "## Over the network", 4)
	a := h.authority("of the daemon")
	h.types("ip netns add desk; ip link add wire0 type veth peer name wire1 netns desk; " +
		"ip address add 10.0.0.5/24 dev wire0; ip link set wire0 up; " +
		"ip -n desk address add 10.0.0.9/24 dev wire1; ip -n desk link set wire1 up")
	h.writes("/etc/berth/ca.pem", string(a.pem), 0o644)
	h.writes("/etc/berth/clients.pem", string(a.pem), 0o644)
	a.hands("/etc/berth/daemon", &x509.Certificate{DNSNames: []string{"berth.example"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.hands("/root/anna", &x509.Certificate{Subject: pkix.Name{CommonName: "anna"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	h.writes("/etc/default/berth", blocks[0], 0o644)
	h.types(blocks[1])
	h.types("systemctl restart berth.service; berth elastic account create shop")
	tokens := h.lines(blocks[2], 5)
	h.types(strings.Join(tokens[:len(tokens)-1], "\n")) // the last line revokes the first token
	h.types("mkdir -p .config/berth; cp ci.token .config/berth/token; " +
		"berth network create front --subnet 10.30.0.0/24; berth address take front --owner rtr --ip 10.30.0.2")
	desk := func(script string) (string, error) {
		// from there only the daemon's port can be reached
		return h.In("ip", "netns", "exec", "desk", "sh", "-ec", "exec 2>&1\n"+script)
	}
	export := strings.Join(h.lines(blocks[3], 4), "\n")
	if out, err := desk(export); err != nil || !strings.Contains(out, "10.30.0.2") {
		h.Errorf("%s\n%s (%v)", export, out, err)
	}
	instead := strings.Replace(export, "export BERTH_TOKEN_FILE=~/.config/berth/token",
		"export BERTH_ADMIN_CLIENT_CERT=/root/anna.pem BERTH_ADMIN_CLIENT_KEY=/root/anna.key", 1)
	if out, err := desk(instead); err != nil || instead == export || !strings.Contains(out, "10.30.0.2") {
		h.Errorf("%s\n%s (%v)", instead, out, err)
	}
	h.types(tokens[len(tokens)-1])
	if out, err := desk(export); err == nil || strings.Contains(out, "10.30.0.2") {
		h.Errorf("with a token that was removed: %s (%v)", out, err)
	}
	h.types("ip netns del desk")
}

// message is one request that a receiver got.
type message struct {
	header http.Header
	body   []byte
}

// receives receives webhooks at an address of the machine.
func (h *Harness) receives(address string, config *tls.Config) <-chan message {
	h.Helper()
	come := make(chan message, 64)
	l := h.listens(address)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			select {
			case come <- message{r.Header, body}:
			default: // it already has enough
			}
		}
	})}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	go func() { _ = server.Serve(l) }()
	h.Cleanup(func() { _ = server.Close() })
	return come
}

// docs/webhooks.md: events reach a receiver whose certificate is from one of the system's authorities, signed with
// the secret as the page checks it, and a receiver on the machine.
func (h *Harness) webhooksPage() {
	h.stopped()
	lines := h.lines(h.shows("docs/webhooks.md", "# Webhooks", 1)[0], 3)
	check := h.shows("docs/webhooks.md", "## Check the signature", 1)[0]
	try := h.lines(h.shows("docs/webhooks.md", "## Status", 1)[0], 1)
	a := h.authority("of receivers")
	pair, err := a.Sign(x509.Certificate{DNSNames: []string{"hooks.example"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.must(err)
	h.writes("/root/receivers.pem", string(a.pem), 0o644)
	h.types("mkdir -p /etc/berth; cat receivers.pem >>/etc/ssl/certs/ca-certificates.crt")
	h.types(strings.Join(lines[:2], "\n"))
	secret, err := h.In("cat", "/etc/berth/webhook.secret")
	h.must(err)
	come := h.receives("127.0.0.1:443", &tls.Config{Certificates: []tls.Certificate{pair}})
	h.meanwhile(lines[2], h.noted(come, "signed", func(m message) error {
		cmd := exec.Command("sh", "-c", check)
		cmd.Stdin = bytes.NewReader(m.body)
		cmd.Env = append(cmd.Environ(), "SECRET="+secret, "ID="+m.header.Get("Webhook-Id"),
			"TIMESTAMP="+m.header.Get("Webhook-Timestamp"), "SIGNATURE="+m.header.Get("Webhook-Signature"))
		_, err := lab.Output(cmd)
		return err
	}))
	h.meanwhile(try[0], h.noted(h.receives("127.0.0.1:8080", nil), "local", func(message) error { return nil }))
}

// noted waits until the event of a network's creation reaches a receiver, and checks it.
func (h *Harness) noted(come <-chan message, network string, as func(message) error) func(string) error {
	made := false
	return func(string) error {
		if !made {
			if _, err := h.Berth("network", "create", network); err != nil {
				return err
			}
			made = true
		}
		for {
			select {
			case m := <-come:
				if strings.Contains(string(m.body), `"`+network+`"`) {
					return as(m)
				}
			default:
				return fmt.Errorf("nothing has come about %s", network)
			}
		}
	}
}
