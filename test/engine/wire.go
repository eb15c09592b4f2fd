//go:build engine

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"berth/test/ground"
)

// overSocket is a client of whoever listens on a unix socket. Each call has a connection of its own.
func overSocket(socket string) *http.Client {
	return &http.Client{Timeout: ground.Patient(time.Minute), Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
}

// takeByHand asks a plugin socket for an address as an engine does, which knows nothing of it: for the endpoint with a
// MAC, and for whichever address where none is given. It returns the address without its mask.
func takeByHand(socket, pool, address, mac string) (string, error) {
	var answer struct{ Address string }
	err := call(socket, "RequestAddress", map[string]any{"PoolID": pool, "Address": address,
		"Options": map[string]string{"com.docker.network.endpoint.macaddress": mac}}, &answer)
	if err != nil {
		return "", err
	}
	ip, _, err := net.ParseCIDR(answer.Address)
	return ip.String(), err
}

// giveByHand gives an address back, as an engine does, behind the back of the engine.
func giveByHand(socket, pool, address string) error {
	return call(socket, "ReleaseAddress", map[string]string{"PoolID": pool, "Address": address}, &struct{}{})
}

// call is one request of the plugin protocol.
func call(socket, method string, body, answer any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	resp, err := overSocket(socket).Post("http://plugin/IpamDriver."+method, "application/json", bytes.NewReader(b))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var refused struct{ Err string }
		err := json.NewDecoder(resp.Body).Decode(&refused)
		return fmt.Errorf("%s: %s: %s (%v)", method, resp.Status, refused.Err, err)
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
