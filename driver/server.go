package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"time"

	"berth/internal/advice"
	"berth/internal/connlimit"
	"berth/internal/drain"
	"berth/internal/ipam"
	"berth/internal/shorten"

	api "github.com/docker/go-plugins-helpers/ipam"
	"github.com/docker/go-plugins-helpers/sdk"
	"github.com/sirupsen/logrus"
)

// Limits for clients. The engine sends a handful of requests at a time, nearly all below 1 KiB. The largest has the
// tags of a network, which are below 256 KiB in any encoding.
const (
	maxBody        = 256 << 10
	maxWaiting     = 4 << 20 // of all requests that have not arrived completely
	maxConnections = 2048
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 10 * time.Second
	answerTimeout  = 20 * time.Second // the engine of a managed plugin waits for 30 s
)

// Handler serves the plugin protocol. It uses the messages and the encoding of docker/go-plugins-helpers, but not its
// handler. That one has no timeouts, no limit on bodies and no context. It also answers an empty body without the
// {"Err": ...} that the engine reads.
//
// Each connection ends with its answer. The engine could write its next request on a kept one just when Berth closes
// it. It would then connect again, and if that fails, repeat the request without its body. A new connection costs
// 0.15 ms of processor time at both ends.
func (d *Driver) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/Plugin.Activate", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", sdk.DefaultContentTypeV1_1)
		io.WriteString(w, `{"Implements": ["IpamDriver"]}`+"\n")
	})
	mux.Handle("/IpamDriver.GetCapabilities", bare(d, "GetCapabilities", d.capabilities))
	mux.Handle("/IpamDriver.GetDefaultAddressSpaces", bare(d, "GetDefaultAddressSpaces", d.addressSpaces))
	mux.Handle("/IpamDriver.RequestPool", call(d, "RequestPool", d.requestPool))
	mux.Handle("/IpamDriver.ReleasePool", call(d, "ReleasePool", d.releasePool))
	mux.Handle("/IpamDriver.RequestAddress", d.undoing(d.requestAddress))
	mux.Handle("/IpamDriver.ReleaseAddress", call(d, "ReleaseAddress", d.releaseAddress))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("%q is not a call of the IPAM driver protocol", r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		mux.ServeHTTP(w, r)
	})
}

// Serve answers calls on l until ctx ends. Then it answers the calls that have arrived (package drain) and returns nil.
func (d *Driver) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           d.Handler(),
		ReadHeaderTimeout: d.headerTimeout,
		ReadTimeout:       d.bodyTimeout,
		WriteTimeout:      d.bodyTimeout + answerTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          d.errors,
		ConnContext:       connlimit.Context,
	}
	return drain.Serve(ctx, server, l, drain.Config{Quiet: d.quiet, First: d.first, Longest: d.bodyTimeout + answerTimeout,
		Limit: connlimit.New(maxConnections, maxWaiting).Listener})
}

// call makes an http.Handler of one of the driver's methods. It decodes the message, which must exist, and encodes the
// answer, or the error in the engine's format.
func call[Req, Res any](d *Driver, name string, method func(context.Context, *Req) (*Res, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := new(Req)
		if err := decode(w, r, req); err != nil {
			d.log.WithField("call", name).WithField(logrus.ErrorKey, said(err)).Warn("refused a malformed request")
			refuse(w, http.StatusBadRequest, err)
			return
		}
		if err := d.ready(); err != nil {
			refuse(w, http.StatusServiceUnavailable, err)
			return
		}
		answer(d, w, r, name, req, method)
	})
}

// undoing is call for address requests. If the client is gone before it gets the answer, undoing releases the address.
// The engine does not know the address and would never release it.
func (d *Driver) undoing(method addressMethod) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var given func() // releases the given address
		call(d, "RequestAddress",
			func(ctx context.Context, msg *api.RequestAddressRequest) (*api.RequestAddressResponse, error) {
				res, err := method(ctx, msg)
				if err == nil {
					given = func() { d.giveBack(ctx, msg, res) }
				}
				return res, err
			}).ServeHTTP(w, r)
		if given != nil && http.NewResponseController(w).Flush() != nil {
			given()
		}
	})
}

type addressMethod = func(context.Context, *api.RequestAddressRequest) (*api.RequestAddressResponse, error)

// giveBack ends the lease in res. The subnet's gateway is not a lease and stays.
func (d *Driver) giveBack(ctx context.Context, msg *api.RequestAddressRequest, res *api.RequestAddressResponse) {
	log := d.log.WithField("call", "RequestAddress").WithField("address", res.Address)
	given, err := netip.ParsePrefix(res.Address)
	if err == nil {
		_, err = d.releaseAddress(ctx, &api.ReleaseAddressRequest{PoolID: msg.PoolID, Address: given.Addr().String()})
	}
	if err != nil {
		log.WithError(err).Warn("the engine disconnected before it received the requested address, and Berth could " +
			"not release that address; `berth check` finds it")
		return
	}
	log.Info("the engine disconnected before it received the requested address; Berth released that address")
}

// bare is call for messages without a body.
func bare[Res any](d *Driver, name string, method func(context.Context, *struct{}) (*Res, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(d, w, r, name, nil, method)
	})
}

func answer[Req, Res any](d *Driver, w http.ResponseWriter, r *http.Request, name string, req *Req,
	method func(context.Context, *Req) (*Res, error)) {
	defer connlimit.Answering(r.Context())()
	defer func() {
		if p := recover(); p != nil {
			d.log.WithField("call", name).Errorf("panic: %v\n%s", p, debug.Stack())
			refuse(w, http.StatusInternalServerError,
				fmt.Errorf("%s failed inside Berth; Berth's log shows where", name))
		}
	}()
	ctx, cancel := context.WithTimeout(ipam.WithActor(r.Context(), "engine"), answerTimeout)
	defer cancel()
	begun := time.Now()
	res, err := method(ctx, req)
	d.observe(name, time.Since(begun), err)
	if err != nil {
		d.log.WithField("call", name).WithField(logrus.ErrorKey, said(err)).Info("refused")
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	text, err := json.Marshal(res)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", sdk.DefaultContentTypeV1_1)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	_, _ = w.Write(append(text, '\n'))
}

// decode reads one JSON message. If a connection breaks, the engine repeats the call with an empty body. That must not
// be read as a message of zero values.
func decode(w http.ResponseWriter, r *http.Request, req any) error {
	if r.ContentLength > maxBody { // reads nothing of it
		return fmt.Errorf("the request could not be read: %w", &http.MaxBytesError{Limit: maxBody})
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return fmt.Errorf("the request could not be read: %w", err)
	}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return errors.New("the request has no body: after a broken connection, the engine repeats a call with an " +
			"empty body; repeat your command")
	}
	if body[0] != '{' {
		return errors.New("the request is not a JSON object")
	}
	if err := json.Unmarshal(body, req); err != nil {
		return fmt.Errorf("the request's JSON does not fit this call: %w", err)
	}
	return nil
}

func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", sdk.DefaultContentTypeV1_1)
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(api.NewErrorResponse(said(err)))
}

// said returns the text of an error for the engine and the log. It shortens what the client sent.
func said(err error) string { return shorten.To(advice.Text(err), shorten.MostText) }
