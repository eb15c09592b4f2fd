# `make help` lists the targets. Two work without preparation: `make demo` and `make test`.

PREFIX        ?= /usr/local
UNITDIR       ?= /etc/systemd/system
PLUGIN_NAME   ?= berth
PLUGIN_TAG    ?= latest
IMAGE         ?= berth
EDGE_IMAGE    ?= berth-edge
FUZZTIME      ?= 10s
SOAK_ROUNDS   ?= 1000
ROLLBACKS     ?= 200
# the test runner: .ci/run sets gotestsum, which also keeps the output
GOTEST        ?= go test
# a sample of the rounds of models and of the fault points; empty: all
SHORT         ?= -short
UNIT          ?= $$(go list ./... | grep -v /test/cluster)
# packages with communicating goroutines; the others have none of their own, or are tested as processes
RACE          ?= ./driver ./store/... $(addprefix ./internal/,admin admin/live admin/relay allocator arrivals background cli/deploy cli/seen deploy/rollout drain \
	deploy/single dhcp dns docker docker/pin edge/... hook neighbours routes webhook) \
	$(addprefix ./internal/ipam/,cluster edit elastic lan ledger names service view)
# the rest of UNIT: .ci/run runs each test once, with or without the race detector
PLAIN         ?= $$(go list ./... | grep -v /test/cluster | grep -vxF "$$(go list $(RACE))")
# the tests that use internal/golden/1.0
GOLDEN        := ./cmd/berth $(addprefix ./internal/,admin admin/trend cli deploy ipam ipam/cluster ipam/service ipam/stores metrics)
ENGINE_FLAGS  ?=
# a Docker Engine of scripts/engines.txt, or `newest`; empty: the machine's
ENGINE        ?=
ENGINES       := $(shell scripts/dockerd)
VERSIONED     := $(if $(filter newest,$(ENGINE)),$(lastword $(ENGINES)),$(ENGINE))
ON_ENGINE     := $(CURDIR)/scripts/as-root$(if $(VERSIONED), $(CURDIR)/scripts/with-engine $(VERSIONED))
# what the engine's version leaves out of the tests
SKIPPED       := $(CURDIR)/build/skipped-$(or $(VERSIONED),machine).txt
# the number of parallel tests on an engine: they wait half of their time
ENGINE_PARALLEL ?= 6
# tests of a file's bytes, or of moments that only one host counts: they mean nothing with etcd
ETCD_NOT      := ^Test(Copy(CutOff|KeepsOthersOff|ReadBackDiffers|ServedMeanwhile|Spaces)|Golden.*|ImportedIsUsed|LatestInDoubt|PutBack|Release(Waits|PoolWaits|Repeated)|WhoAfterTrimming)$$|^TestGA25Variables$$/another_host
# the tests with files, each with the flag -etcd of internal/ipam/ipamtest; those of cluster have none
ETCD_ROOMS    := ./internal/allocator $(addprefix ./internal/ipam/,edit ledger service stores view)
ETCD_SAMPLE   := ^Test(BO|GA|Owner|Guess|Plan|Edits|Who|Model|Release|Lent|Restart|Wanted)
# for `make bench`: the benchmarks, the number of runs, and the packages with benchmarks besides bench
BENCH         ?= .
COUNT         ?= 6
BENCHED       := $(addprefix ./internal/,admin/page alloc cli/deploy dns docker) ./store/bolt ./store/etcd
EDGE_FLAGS    ?=
PAGE_FLAGS    ?=
MACHINE_FLAGS ?=
MACHINE_TREE  ?= $(CURDIR)/build/machine/_tree

# The Go that scripts/needs fetched if the machine's own is too old, otherwise the machine's own.
export PATH := $(CURDIR)/build/tools/go/bin:$(PATH)

# no directory names in compiled code: another clone can use the cache
export GOFLAGS := $(GOFLAGS) -trimpath

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
SUDO    := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
GOBUILD  = CGO_ENABLED=0 go build -ldflags "-s -w -X main.version=$(VERSION)"

.PHONY: help build dist unit race busy-host histories ipam-etcd ipam-etcd-sample engine promises engine-whole engines engines-table elastic-firewalls engine-clean edge docs golden page page-shots machine machine-clean test mutants soak nightly bench fuzz lint plugin plugins push push-plugins \
	packages arm64 release release-check upgrades image edge-image install uninstall \
	demo demo-clean clean

help: ## show all targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## bin/berth, a static binary for this machine
	@scripts/needs go
	$(GOBUILD) -o bin/berth ./cmd/berth

dist: ## static binaries for amd64 and arm64 in bin/
	@scripts/needs go
	GOOS=linux GOARCH=amd64 $(GOBUILD) -o bin/berth-linux-amd64 ./cmd/berth
	GOOS=linux GOARCH=arm64 $(GOBUILD) -o bin/berth-linux-arm64 ./cmd/berth

unit: ## the tests that need no Docker Engine: two minutes; run it after each change
	@scripts/needs go test
	scripts/in-memory $(GOTEST) $(SHORT) -count 1 -timeout 30m $(UNIT)

race: ## the tests of `make unit` with the race detector, for packages whose goroutines communicate
	@scripts/needs go test
	scripts/in-memory $(GOTEST) $(SHORT) -race -count 1 -timeout 60m $(RACE)

busy-host: ## the tests of `make unit` on a host whose bridges and routes use the tests' addresses (root)
	@scripts/needs go test edge
	$(SUDO) scripts/busy-host scripts/in-memory $(GOTEST) $(SHORT) -count 1 -timeout 30m $(UNIT)

histories: ## test hosts on a failing etcd with porcupine (test/cluster): five minutes, more on a busy machine
	@scripts/needs go etcd
	go test ./test/cluster -count 1 -timeout 30m -v

# The tests of addresses on etcd check that the rules hold if a transaction may run again, and another host may
# have changed what it read.
ipam-etcd: ## the tests of the packages in internal/ipam with etcd instead of files; this takes long
	@scripts/needs go etcd
	scripts/in-memory scripts/with-etcd sh -c 'go test -p 1 $(ETCD_ROOMS) -count 1 -timeout 0 -rapid.checks 15 -skip "$(ETCD_NOT)" -etcd $$ETCD'

ipam-etcd-sample: ## a sample of the tests of `make ipam-etcd`: about a minute
	@scripts/needs go etcd
	scripts/in-memory scripts/with-etcd sh -c '$(GOTEST) -short -p 1 $(filter-out %/ledger %/stores,$(ETCD_ROOMS)) -count 1 -timeout 30m -rapid.checks 3 -run "$(ETCD_SAMPLE)" -skip "CutOff|$(ETCD_NOT)" -etcd $$ETCD'

# The engine tests make plugin sockets, network namespaces and their own engines, so they run as root.
define on_engine
	@scripts/needs go test compose page $(if $(VERSIONED),dockerd,engine)
	@$(if $(VERSIONED),scripts/dockerd $(VERSIONED))
	@rm -f $(SKIPPED)
	$(GOTEST) -tags engine -count 1 -exec "$(ON_ENGINE)" ./test/engine/... -skipped=$(SKIPPED) $(1); status=$$?; \
	  cat $(SKIPPED); exit $$status
endef

engine: build ## the tests on the machine's Docker Engine, or on another (ENGINE=29.8.0); some of them: ENGINE_FLAGS="-run 'Swarm|Pin' -v"
	$(call on_engine,$(SHORT) -timeout 60m -parallel $(ENGINE_PARALLEL) $(ENGINE_FLAGS))

promises: build ## the tests of `make engine` that show the promises of docs/dev/promises.md, on the machine's Docker Engine or on another (ENGINE)
	$(call on_engine,$(SHORT) -timeout 60m -parallel $(ENGINE_PARALLEL) -run "$$(scripts/promises)")

engine-whole: build dist ## the tests of `make engine` with all rounds and variants: an hour (ENGINE)
	$(call on_engine,-timeout 0 -parallel 4 -v -args \
		-killed.rounds 50 -kept.rounds 100 -lan.each 100 -dhcp.rounds 100 -elastic-starts 1000 -elastic-moves 100 -deploy-kills 1000)

engines: ## `make engine` on the machine's Docker Engine, and on each engine of scripts/engines.txt
	for engine in "" $(ENGINES); do $(MAKE) --no-print-directory engine ENGINE=$$engine || exit 1; done

engines-table: ## the table of docs/engines.md, counted on the machine's Docker Engine and on each engine of scripts/engines.txt
	@mkdir -p build
	rm -f build/daily.tsv
	for engine in "" $(ENGINES); do $(MAKE) --no-print-directory engine ENGINE=$$engine \
	  ENGINE_FLAGS="-run TestDaily -kept.rounds 10 -daily $(CURDIR)/build/daily.tsv" || exit 1; done
	scripts/engines-table build/daily.tsv

elastic-firewalls: ## elastic addresses on the newest Docker Engine, with each of its firewalls, with and without its proxy
	for options in "--firewall-backend=iptables" "--firewall-backend=iptables --userland-proxy=false" \
	  "--firewall-backend=nftables" "--firewall-backend=nftables --userland-proxy=false"; do \
	  $(MAKE) --no-print-directory engine ENGINE=newest \
	    ENGINE_FLAGS="-run 'TestElastic' -elastic-stops 50 -dockerd='$$options'" || exit 1; done

engine-clean: ## remove what an interrupted `make engine` left behind
	go test -tags engine -count 1 -exec "$(CURDIR)/scripts/as-root" ./test/engine/... -clean

# They make their own network namespaces and change nothing else.
edge: build ## the tests of elastic addresses on this kernel, as root (EDGE_FLAGS='-run "Frozen|Faults|Moves" -rounds 200 -moves 100 -timeout 90m -v' for some of them)
	@scripts/needs go etcd edge
	$(GOTEST) -tags edge $(SHORT) -count 1 -timeout 20m -exec "$(CURDIR)/scripts/as-root" $(if $(EDGE_FLAGS),,./internal/edge/nft) ./test/edge $(EDGE_FLAGS)

page: build ## tests of the page in Debian's chromium: every view, narrow and wide, dark and light, with scripts and without, by keyboard
	@scripts/needs page
	$(GOTEST) -tags page $(SHORT) -count 1 -timeout 20m ./test/page $(PAGE_FLAGS)

docs: ## write docs/commands.md and docs/metrics-list.md from the program
	@scripts/needs go
	go test ./cmd/berth -count 1 -run TestCommandsPage -update
	go test ./internal/metrics -count 1 -run TestDocs -update

golden: ## add what is new to the files of internal/golden (CONTRIBUTING.md)
	@scripts/needs go
	go test -short -p 1 -count 1 -run TestGolden $(GOLDEN) -update-golden

page-shots: build ## make the pictures of docs/page.md
	@scripts/needs page
	go test -tags page -count 1 -timeout 20m ./test/page -run Shots -shots "$(CURDIR)/docs"

machine: ## the tests on a whole Debian with systemd and Docker (MACHINE_FLAGS='-run Kept -cuts 10 -containers 25', ENGINE=29.8.0); installs what it needs
	@scripts/needs go compose machine edge $(if $(VERSIONED),dockerd)
	@$(if $(VERSIONED),scripts/dockerd $(VERSIONED))
	@$(SUDO) scripts/machine-tree $(MACHINE_TREE)
	$(GOTEST) -tags machine $(SHORT) -count 1 -timeout 60m -exec "$(CURDIR)/scripts/as-root" ./test/machine -tree $(MACHINE_TREE) \
	  $(if $(VERSIONED),-engine "$(CURDIR)/build/dockerd/$(VERSIONED)") $(MACHINE_FLAGS)

machine-clean: ## remove what an interrupted `make machine` left behind
	go test -tags machine -count 1 -exec "$(CURDIR)/scripts/as-root" ./test/machine -clean

test: ## `make unit`, `make edge`, `make page` and `make engine`: ten minutes; installs what it needs with apt
	@scripts/needs go test compose page engine
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory edge
	@$(MAKE) --no-print-directory page
	@$(MAKE) --no-print-directory engine

mutants: ## make 300 changes of one line each, one at a time, and show which of them no test of `make unit` notices
	@scripts/needs go web etcd
	go run ./test/mutants -out build/mutants.txt

soak: ## kill the daemon under load SOAK_ROUNDS times, and test all pairs of absences
	go test ./test/crash -count 1 -timeout 0 -run 'Soak|Absence' -rounds $(SOAK_ROUNDS) -every-pair -v

nightly: ## everything that takes too long for each change: every round of every model and fault, all packages with the race detector, and more
	@scripts/needs go test compose page engine
	$(MAKE) --no-print-directory busy-host SHORT=
	$(MAKE) --no-print-directory race RACE='$$(UNIT)' SHORT=
	$(MAKE) --no-print-directory histories ipam-etcd fuzz soak engine-whole
	for engine in $(ENGINES); do $(MAKE) --no-print-directory engine ENGINE=$$engine SHORT= ENGINE_FLAGS='-timeout 0' || exit 1; done
	$(MAKE) --no-print-directory elastic-firewalls
	$(MAKE) --no-print-directory edge SHORT= EDGE_FLAGS='-timeout 120m -rounds 200 -moves 100 -recreated 100 -kept 10m -kept.lasts 120'
	$(MAKE) --no-print-directory page SHORT=
	go test ./test/crash -count 1 -timeout 0 -run Rollback -rollbacks $(ROLLBACKS) -v
	go test ./internal/ipam/cluster -count 1 -timeout 0 -run MendKeepsWhatRuns -mend.rounds $(ROLLBACKS)
	go test ./internal/cli/deploy -count 1 -timeout 0 -run PlanIsStill -rapid.checks 1000 -v
	go test ./internal/admin/page -count 1 -timeout 0 -run MapAgrees -rapid.checks 10000 -v

bench: ## the benchmarks, with benchstat: ten minutes on an idle machine (BENCH='Socket|Etcd' for some of them; docs/dev/benchmarks.md)
	@scripts/needs go bench
	@mkdir -p build
	go test -run '^$$' -bench '$(BENCH)' -benchtime 100ms -count $(COUNT) $(BENCHED) >build/bench.txt
	go test -run '^$$' -bench '$(BENCH)' -benchtime 1x -count $(COUNT) -timeout 0 ./bench >>build/bench.txt
	build/tools/benchstat build/bench.txt

fuzz: ## run every fuzz target for FUZZTIME
	scripts/fuzz $(FUZZTIME)

# The licenses of linked code that are compatible with Berth's own, Apache-2.0.
LICENSES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT

lint: ## golangci-lint with gofmt and go vet; the style and links of pages; known vulnerabilities; licenses of linked code
	@scripts/needs go lint
	go test . -count 1 -run '^Test(Docs.*|Links)$$'
	build/tools/golangci-lint run --build-tags engine,machine,edge,page ./...
	build/tools/govulncheck -db "file://$(CURDIR)/build/tools/vulndb" ./cmd/berth
	build/tools/go-licenses check ./cmd/berth --allowed_licenses=$(LICENSES) 2>build/licenses.log || { cat build/licenses.log >&2; exit 1; }

plugin: ## the managed plugin PLUGIN_NAME:PLUGIN_TAG, in this machine's engine
	@if command -v go >/dev/null || [ ! -x bin/berth ]; then $(MAKE) --no-print-directory build; fi
	$(SUDO) scripts/plugin $(PLUGIN_NAME):$(PLUGIN_TAG) bin/berth build/plugin

push: ## push PLUGIN_NAME:PLUGIN_TAG to its registry
	$(SUDO) docker plugin push $(PLUGIN_NAME):$(PLUGIN_TAG)

packages: dist ## Debian packages for amd64 and arm64, in build/packages: the same commit makes the same bytes
	@scripts/needs packages
	packaging/build "$(VERSION)" build/packages amd64=bin/berth-linux-amd64 arm64=bin/berth-linux-arm64

# proot runs a program's children in the same emulator. Three tests are left out: one needs a fault in a mapping,
# which qemu does not pass on, and two trace system calls, which proot itself does.
QEMU := proot -q qemu-aarch64-static
arm64: ## unit tests of stores, state and allocator on an emulated arm64 (qemu-user), and a daemon without an engine
	@scripts/needs go arm64
	CGO_ENABLED=0 GOARCH=arm64 go test -short -count 1 -exec "$(QEMU)" \
	  -skip "TestCutUnderAnOpenStore|TestFailingCalls|TestKilledAtEachCall" ./store/mem ./store/bolt ./internal/alloc ./internal/allocator \
	  ./internal/ipam/ledger ./internal/ipam/service
	CGO_ENABLED=0 GOARCH=arm64 go build -o build/berth-arm64 ./cmd/berth
	scripts/without-engine $(QEMU) build/berth-arm64

release-check: release ## test the files of the release VERSION on Debian 12 and 13 and Ubuntu 24.04 (ENGINE=29.8.0): install, use, upgrade and remove
	@scripts/needs compose machine web $(if $(VERSIONED),dockerd)
	@$(if $(VERSIONED),scripts/dockerd $(VERSIONED))
	@for suite in bookworm trixie noble; do \
	  $(SUDO) scripts/machine-tree $(MACHINE_TREE)-$$suite $$suite && \
	  go test -tags machine,release -count 1 -timeout 30m -exec "$(CURDIR)/scripts/as-root" ./test/machine -run 'TestRelease$$' -v \
	    -tree $(MACHINE_TREE)-$$suite -release "$(CURDIR)/build/release/$(VERSION)" -version "$(VERSION)" \
	    $(if $(VERSIONED),-engine "$(CURDIR)/build/dockerd/$(VERSIONED)") || exit 1; done

upgrades: ## open states of the older versions in FROM (tags or commits) with this version
	@scripts/needs go
	go test -tags upgrade -count 1 -timeout 30m ./test/upgrade -from "$(FROM)" -v

release: ## all files of the release VERSION, in build/release/VERSION: the same commit makes the same bytes
	@scripts/needs go release
	packaging/release "$(VERSION)" "build/release/$(VERSION)"

# An engine accepts no list of architectures for a plugin, so each has its own tag.
plugins: dist ## the managed plugin for both architectures, PLUGIN_NAME:PLUGIN_TAG-amd64 and -arm64, in this machine's engine
	for arch in amd64 arm64; do $(SUDO) scripts/plugin $(PLUGIN_NAME):$(PLUGIN_TAG)-$$arch bin/berth-linux-$$arch build/plugin-$$arch || exit 1; done

push-plugins: ## push the plugins of `make plugins` to their registry
	for arch in amd64 arm64; do $(SUDO) docker plugin push $(PLUGIN_NAME):$(PLUGIN_TAG)-$$arch || exit 1; done

image: build ## the image IMAGE, from scratch, to run Berth in a container
	$(SUDO) docker build -t $(IMAGE) .

edge-image: build ## the image EDGE_IMAGE, from debian (which it pulls) with nft and iptables, to run `berth edge` in a container
	$(SUDO) docker build -f Dockerfile.edge -t $(EDGE_IMAGE) .

install: ## install the binary, the systemd units and the group `berth` (DESTDIR, PREFIX, UNITDIR)
	@if command -v go >/dev/null || [ ! -x bin/berth ]; then $(MAKE) --no-print-directory build; fi
	$(SUDO) scripts/install bin/berth "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

uninstall: ## remove what `make install` installed; the addresses in /var/lib/berth stay
	$(SUDO) scripts/uninstall "$(DESTDIR)" "$(PREFIX)" "$(UNITDIR)"

demo: ## start Berth, create a network on it, run a container that shows its address
	@scripts/needs go busybox engine
	@$(MAKE) --no-print-directory build
	@$(SUDO) scripts/demo up

demo-clean: ## undo `make demo`
	@$(SUDO) scripts/demo down

clean: ## remove bin/ and build/
	rm -rf bin build
