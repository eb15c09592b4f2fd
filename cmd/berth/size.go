package main

import "github.com/docker/go-units"

// sizeFlag is a number of bytes in the format of Docker's own flags: 64MiB, 64m.
type sizeFlag int64

// String implements pflag.Value.
func (s *sizeFlag) String() string { return units.BytesSize(float64(*s)) }

// Type implements pflag.Value.
func (s *sizeFlag) Type() string { return "size" }

// Set implements pflag.Value.
func (s *sizeFlag) Set(text string) error {
	n, err := units.RAMInBytes(text)
	*s = sizeFlag(n)
	return err
}
