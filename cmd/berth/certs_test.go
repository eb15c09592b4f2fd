package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"os"
	"regexp"

	"berth/test/lab"

	"github.com/rogpeppe/go-internal/testscript"
)

// certs makes, in the script's directory, NAME.pem and NAME.key of an authority (ca), of a daemon on 127.0.0.1 that it
// vouches for (daemon), and of two clients (admin, reader), and of another authority (other).
func certs(ts *testscript.TestScript, _ bool, _ []string) {
	var ca lab.Authority
	for _, name := range []string{"other", "ca"} {
		var err error
		ca, err = lab.NewAuthority(name)
		ts.Check(err)
		ts.Check(lab.WritePair(ca.Certificate, ts.MkAbs(name+".pem"), ts.MkAbs(name+".key")))
	}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for name, c := range map[string]x509.Certificate{
		"daemon": {IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		"admin":  {Subject: pkix.Name{Organization: []string{"berth:admin"}}, ExtKeyUsage: client},
		"reader": {ExtKeyUsage: client},
	} {
		c.Subject.CommonName = name
		pair, err := ca.Sign(c)
		ts.Check(err)
		ts.Check(lab.WritePair(pair, ts.MkAbs(name+".pem"), ts.MkAbs(name+".key")))
	}
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
