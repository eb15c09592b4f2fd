package api

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret is the maximum length of a secret in bytes.
const maxSecret = 64 << 10

// ReadSecret reads a password or a token from a file with one line. It refuses a file that everybody may read, because
// its content is no longer secret.
func ReadSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return "", fmt.Errorf("everyone can read %s (mode %o): chmod 600 it", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(text) > maxSecret {
		err = errors.New("it is too long")
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	line, rest, _ := strings.Cut(strings.TrimRight(string(text), "\r\n"), "\n")
	if rest != "" {
		return "", fmt.Errorf("%s must contain exactly one line", path)
	}
	return line, nil
}

// ReadCAs reads the PEM file of the certificate authorities that are accepted for the other end.
func ReadCAs(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no CA certificate in PEM", path)
	}
	return pool, nil
}
