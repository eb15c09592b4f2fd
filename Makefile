# What can be done with this tree: `make help`. The two that need nothing else first: `make demo` and `make test`.

PREFIX        ?= /usr/local
UNITDIR       ?= /etc/systemd/system
PLUGIN_NAME   ?= berth
PLUGIN_TAG    ?= latest
IMAGE         ?= berth
FUZZTIME      ?= 10s
SOAK_ROUNDS   ?= 1000
ENGINE_FLAGS  ?=

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
SUDO    := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
GOBUILD  = CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

.PHONY: help build dist unit ipam-etcd engine engine-clean test soak bench fuzz lint plugin push image install uninstall \
	demo demo-clean clean

help: ## show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/berth, a static binary for this machine
	@scripts/needs go
	$(GOBUILD) -o bin/berth ./cmd/berth

dist: ## static binaries for amd64 and arm64 in bin/
	@scripts/needs go
	GOOS=linux GOARCH=amd64 $(GOBUILD) -o bin/berth-linux-amd64 ./cmd/berth
	GOOS=linux GOARCH=arm64 $(GOBUILD) -o bin/berth-linux-arm64 ./cmd/berth

unit: ## go vet, and all tests that need no Docker Engine, under the race detector
	go vet ./...
	go vet -tags engine ./test/...
	go test -race -timeout 20m $$(go list ./... | grep -v /test/cluster)

# The engine tests make plugin sockets, network namespaces and an engine of their own: they run as root.
histories: ## porcupine over hosts on an etcd that fails (test/cluster); wants a machine with nothing else to do
	@scripts/needs go etcd
	go test ./test/cluster -count 1 -timeout 30m -v

ipam-etcd: ## the tests of internal/ipam with their files in the etcd at ETCD=http://...; they take long
	go test ./internal/ipam -count 1 -timeout 0 -rapid.checks 15 -etcd $(ETCD)

engine: build ## the tests on the real Docker Engine (ENGINE_FLAGS='-run Swarm -v' for some of them)
	go test -tags engine -count 1 -timeout 40m -exec "$(CURDIR)/scripts/as-root" ./test/engine/... $(ENGINE_FLAGS)

engine-clean: ## remove what an interrupted `make engine` left behind
	go test -tags engine -count 1 -exec "$(CURDIR)/scripts/as-root" ./test/engine/... -clean

test: ## everything; installs what it needs with apt
	@scripts/needs go test engine
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory engine

soak: ## SIGKILL under load, SOAK_ROUNDS times
	go test ./test/crash -count 1 -timeout 0 -run Soak -rounds $(SOAK_ROUNDS) -v

bench: ## run the benchmarks and write docs/benchmarks.md
	@scripts/needs go busybox etcd engine
	go run ./bench

fuzz: ## every fuzz target for FUZZTIME
	scripts/fuzz $(FUZZTIME)

lint: ## gofmt, vet and golangci-lint (built into build/tools from the Go module proxy)
	scripts/lint

plugin: build ## the managed plugin PLUGIN_NAME:PLUGIN_TAG, in this machine's engine
	$(SUDO) scripts/plugin $(PLUGIN_NAME):$(PLUGIN_TAG) bin/berth build/plugin

push: ## push PLUGIN_NAME:PLUGIN_TAG to its registry
	$(SUDO) docker plugin push $(PLUGIN_NAME):$(PLUGIN_TAG)

image: build ## the image IMAGE, from scratch, to run Berth in a container
	$(SUDO) docker build -t $(IMAGE) .

install: ## install the binary, the systemd units and the group `berth` (DESTDIR, PREFIX, UNITDIR)
	@if command -v go >/dev/null || [ ! -x bin/berth ]; then $(MAKE) --no-print-directory build; fi
	$(SUDO) scripts/install bin/berth "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

uninstall: ## remove what `make install` put there; the addresses in /var/lib/berth stay
	$(SUDO) scripts/uninstall "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

demo: ## start Berth, create a network on it, run a container that shows its address
	@scripts/needs go busybox engine
	@$(MAKE) --no-print-directory build
	@$(SUDO) scripts/demo up

demo-clean: ## undo `make demo`
	@$(SUDO) scripts/demo down

clean: ## remove bin/ and build/
	rm -rf bin build
