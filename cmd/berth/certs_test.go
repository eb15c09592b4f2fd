package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// certs makes, in the script's directory, NAME.pem and NAME.key of an authority (ca), of a daemon on 127.0.0.1 that it
// vouches for (daemon), and of two clients (admin, reader), and of another authority (other).
func certs(ts *testscript.TestScript, _ bool, _ []string) {
	ca, caKey := certificate(ts, "ca",
		&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	certificate(ts, "other",
		&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	certificate(ts, "daemon",
		&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, ca, caKey)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	certificate(ts, "admin",
		&x509.Certificate{Subject: pkix.Name{Organization: []string{"berth:admin"}}, ExtKeyUsage: client}, ca, caKey)
	certificate(ts, "reader", &x509.Certificate{ExtKeyUsage: client}, ca, caKey)
}

func certificate(ts *testscript.TestScript, name string, c, parent *x509.Certificate,
	parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	if parent == nil {
		parent, parentKey = c, key
	}
	c.Subject.CommonName, c.SerialNumber = name, big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	ts.Check(err)
	made, err := x509.ParseCertificate(der)
	ts.Check(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		0o600))
	ts.Check(os.WriteFile(ts.MkAbs(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		0o600))
	return made, key
}

var remoteAddress = regexp.MustCompile(`address="?(127\.0\.0\.1:[0-9]+)`)

// remote LOG finds in a daemon's log where it listens on the network, and keeps that in $REMOTE.
func remote(ts *testscript.TestScript, _ bool, args []string) {
	log, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	found := remoteAddress.FindSubmatch(log)
	if found == nil {
		ts.Fatalf("the daemon does not say where it listens: %s", log)
	}
	ts.Setenv("REMOTE", string(found[1]))
}

// keep FILE keeps what the last command wrote to standard output.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(ts.ReadFile("stdout")), 0o600))
}
