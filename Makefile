# `make` lists the targets. Needs Go, git and bash; test/setup gets the rest.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

build   := CGO_ENABLED=0 go build -trimpath -ldflags '-s -w'
nodes   := linux-amd64 linux-arm64
clients := linux-amd64 linux-arm64 darwin-amd64 darwin-arm64 windows-amd64 windows-arm64

# A pattern's stem is <os>-<arch>.
system = GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: embed ## bin/qj, with the node binaries inside
	$(build) -o bin/qj .

.PHONY: dist
dist: $(clients:%=client-%) ## clients for linux, macOS and Windows, with checksums
	cd dist && sha256sum qj-* > SHA256SUMS

.PHONY: demo
demo: build ## train a real network in two processes and look at the run
	@test/setup demo
	@examples/demo

# A program with the race detector in it sleeps for a second before it ends; tests start many such.
.PHONY: test
test: build ## everything that has to pass before a merge
	test/setup test
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt -w $$unformatted"; exit 1; }
	go vet ./...
	bin/staticcheck ./...
	GOOS=darwin $(build) -o /dev/null .
	GOOS=windows $(build) -o /dev/null .
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 QJ_BIN=$(CURDIR)/bin/qj go test -race -count=1 -timeout 10m ./...

.PHONY: bench
bench: build ## time what people wait for
	@test/setup bench
	@test/bench

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist launcher/embedded/nodes/*.gz

.PHONY: embed
embed: $(nodes:%=node-%)

# Without the commit in it, a node binary changes only when its code does; stores keep each under its hash.
# The .gz comes by a rename, for somebody else's build may be reading the old one.
node-%: FORCE
	$(system) $(build) -buildvcs=false -o bin/qj-node-$* ./launcher/qj-node
	@gzip -n9 < bin/qj-node-$* > bin/qj-node-$*.gz
	@mv bin/qj-node-$*.gz launcher/embedded/nodes/

client-%: embed FORCE
	$(system) $(build) -o dist/qj-$*$(if $(findstring windows,$*),.exe) .

FORCE:
