package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"time"
)

// Authority signs certificates. The zero Authority makes self-signed ones.
type Authority struct{ tls.Certificate }

// NewAuthority makes an authority with a name.
func NewAuthority(name string) (Authority, error) {
	own, err := Authority{}.Sign(x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return Authority{own}, err
}

// Sign makes a certificate. It is valid for an hour unless c says otherwise.
func (a Authority) Sign(c x509.Certificate) (pair tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := a.Leaf, a.PrivateKey
	if parent == nil {
		parent, signer = &c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, parent, &key.PublicKey, signer)
	if err != nil {
		return pair, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// WritePair writes a certificate and its key in PEM, each if it has a path.
func WritePair(pair tls.Certificate, certFile, keyFile string) error {
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	for _, part := range []struct {
		path, kind string
		der        []byte
	}{{certFile, "CERTIFICATE", pair.Certificate[0]}, {keyFile, "PRIVATE KEY", key}} {
		if part.path != "" {
			text := pem.EncodeToMemory(&pem.Block{Type: part.kind, Bytes: part.der})
			err = errors.Join(err, os.WriteFile(part.path, text, 0o600))
		}
	}
	return err
}
