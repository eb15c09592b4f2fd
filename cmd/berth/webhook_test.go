package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptReceiver is a receiver of webhooks for a script. It writes a line in received for each one it accepts:
// type, name, and whether the signature is genuine according to the script of docs/webhooks.md.
type scriptReceiver struct {
	dir, verify string
	address     string
	server      *http.Server
	ended       chan error

	mu     sync.Mutex
	status int
}

type receiverKey struct{}

// receiverCommand is the command of scripts:
//
//	receiver start           puts its URL into $RECEIVER; the secret, if any, is in the file secret
//	receiver stop
//	receiver answers STATUS  answers with STATUS from now on; if that is not 2xx, records messages as refused
func receiverCommand(ts *testscript.TestScript, neg bool, args []string) {
	r := ts.Value(receiverKey{}).(*scriptReceiver)
	switch {
	case !neg && len(args) == 1 && args[0] == "start":
		ts.Check(r.start())
		ts.Setenv("RECEIVER", "http://"+r.address)
	case !neg && len(args) == 1 && args[0] == "stop":
		r.stop()
	case !neg && len(args) == 2 && args[0] == "answers":
		r.mu.Lock()
		defer r.mu.Unlock()
		_, err := fmt.Sscan(args[1], &r.status)
		ts.Check(err)
	default:
		ts.Fatalf("usage: receiver start|stop|answers STATUS")
	}
}

func (r *scriptReceiver) start() error {
	text, err := os.ReadFile(r.verify)
	if err != nil {
		return err
	}
	script := regexp.MustCompile("(?s)```sh\n(#!/bin/sh\n# verify.sh.*?)```").FindSubmatch(text)
	if script == nil {
		return fmt.Errorf("%s has no verify.sh", r.verify)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "verify.sh"), script[1], 0o700); err != nil {
		return err
	}
	if r.address == "" {
		r.address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		return err
	}
	r.address, r.server, r.ended = l.Addr().String(), &http.Server{Handler: r}, make(chan error, 1)
	go func() { r.ended <- r.server.Serve(l) }()
	return nil
}

func (r *scriptReceiver) stop() {
	if r.server != nil {
		r.server.Close()
		<-r.ended
		r.server = nil
	}
}

func (r *scriptReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	line := regexp.MustCompile(`^\{"type":"([^"]*)"`).FindStringSubmatch(string(body))
	name := regexp.MustCompile(`"name":"([^"]*)"`).FindStringSubmatch(string(body))
	if err != nil || line == nil {
		http.Error(w, "no message", http.StatusBadRequest)
		return
	}
	said := []string{line[1]}
	if name != nil {
		said = append(said, name[1])
	}
	said = append(said, r.genuine(req.Header, string(body)))
	if r.status != 0 {
		said = append(said, "refused")
		w.WriteHeader(r.status)
	}
	f, err := os.OpenFile(filepath.Join(r.dir, "received"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		_, _ = fmt.Fprintln(f, strings.Join(said, " "))
		_ = f.Close()
	}
}

// genuine runs the script of the docs.
func (r *scriptReceiver) genuine(h http.Header, body string) string {
	if h.Get("webhook-signature") == "" {
		return "unsigned"
	}
	secret, err := os.ReadFile(filepath.Join(r.dir, "secret"))
	if err != nil {
		return err.Error()
	}
	check := exec.Command(filepath.Join(r.dir, "verify.sh"))
	check.Stdin = strings.NewReader(body)
	check.Env = append(os.Environ(), "SECRET="+strings.TrimSpace(string(secret)), "ID="+h.Get("webhook-id"),
		"TIMESTAMP="+h.Get("webhook-timestamp"), "SIGNATURE="+h.Get("webhook-signature"))
	if check.Run() != nil {
		return "forged"
	}
	return "genuine"
}
