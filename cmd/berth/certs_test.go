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

// certs writes NAME.pem and NAME.key into the script's directory: of an authority (ca), of a daemon on 127.0.0.1
// (daemon) and two clients (admin, reader) that it signs, and of another authority (other).
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

// remote LOG finds the daemon's network address in its log, and keeps it in $REMOTE.
func remote(ts *testscript.TestScript, _ bool, args []string) {
	log, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	found := remoteAddress.FindSubmatch(log)
	if found == nil {
		ts.Fatalf("the daemon does not say where it listens: %s", log)
	}
	ts.Setenv("REMOTE", string(found[1]))
}

// keep FILE saves the standard output of the last command.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(ts.ReadFile("stdout")), 0o600))
}
