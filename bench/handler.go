package main

import (
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// handlerWord has this program be a handler: its socket comes next, and the file that it writes to, if any.
const handlerWord = "handler"

// nothing is a driver that does nothing, to measure what the protocol costs by itself.
type nothing struct{}

func (nothing) GetCapabilities() (*api.CapabilitiesResponse, error) {
	return &api.CapabilitiesResponse{RequiresMACAddress: true}, nil
}
func (nothing) GetDefaultAddressSpaces() (*api.AddressSpacesResponse, error) {
	return &api.AddressSpacesResponse{}, nil
}
func (nothing) RequestPool(*api.RequestPoolRequest) (*api.RequestPoolResponse, error) {
	return &api.RequestPoolResponse{}, nil
}
func (nothing) ReleasePool(*api.ReleasePoolRequest) error { return nil }
func (nothing) RequestAddress(*api.RequestAddressRequest) (*api.RequestAddressResponse, error) {
	return &api.RequestAddressResponse{Address: "10.0.0.2/8"}, nil
}
func (nothing) ReleaseAddress(*api.ReleaseAddressRequest) error { return nil }

// onlyPuts is a driver that makes one bare transaction for each address.
type onlyPuts struct {
	nothing
	put func() error
}

func (o onlyPuts) RequestAddress(req *api.RequestAddressRequest) (*api.RequestAddressResponse, error) {
	if err := o.put(); err != nil {
		return nil, err
	}
	return o.nothing.RequestAddress(req)
}

// serveHandler serves a driver that does nothing on a socket or, with a file, one that makes one bare transaction in it
// for each address, until it is told to end.
func serveHandler(path, file string) error {
	var d api.Ipam = nothing{}
	if file != "" {
		put, closeFile, err := bareKeys(file, 1, 1)
		if err != nil {
			return err
		}
		defer closeFile()
		d = onlyPuts{put: put}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	defer l.Close()
	go api.NewHandler(d).Serve(l)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	<-told
	return nil
}

// startHandler starts this program again, as a handler.
func startHandler(path, file string) (*served, error) {
	s := &served{plugin: path, cmd: exec.Command("/proc/self/exe", handlerWord, path, file)}
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	return s, s.answers()
}
