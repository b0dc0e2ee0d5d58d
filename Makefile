# The targets that people use. Each sets up what it needs.
#   make build   bin/bayplan with the pod helper in it
#   make up      a cluster with one node, in the foreground
#   make demo    from an image to running pods and back, without network
#   make test    every test that this machine can run
.PHONY: build up demo test peer clients lint bench figures generate generated cross deps helper clean

GO ?= go
# One setting for builds and tests, so that they share compiled packages. Only the pod helper (and the race detector) is cgo.
export CGO_ENABLED = 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The Kubernetes whose API is served: `kubectl version` compares it with its own.
KUBERNETES = v1.37.2
KUBE_VERSION = k8s.io/component-base/version
LDFLAGS = -s -w -X github.com/bayplan/bayplan/internal/cli.Version=$(VERSION) \
	-X $(KUBE_VERSION).gitVersion=$(KUBERNETES) -X $(KUBE_VERSION).gitMajor=1 -X $(KUBE_VERSION).gitMinor=37 \
	-X $(KUBE_VERSION).gitTreeState=clean
ARCH = $(shell $(GO) env GOARCH)
HELPER = internal/node/runtime/embedded/helper/bayplan-pod-linux-$(ARCH)
HELPER_SOURCES = $(shell find runtime-helper internal/node/runtime/protocol -name '*.go' -o -name 'go.*' -o -name build.sh)

build: helper
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/bayplan ./cmd/bayplan

# The pod helper is C and Go and runs on Linux only; elsewhere bayplan is built without it and has no real nodes.
ifeq ($(shell uname -s),Linux)
helper: $(HELPER)
else
helper:
endif

$(HELPER): $(HELPER_SOURCES) | deps
	./runtime-helper/build.sh $(CURDIR)/$(HELPER)

# Debian packages that a build needs; as root they are installed, otherwise the missing ones are named.
deps:
	./build/deps.sh

up: build
	bin/bayplan up

demo: build
	./examples/demo.sh

test: build
	./build/test.sh

# The scheduler beside kube-scheduler's own plugins.
peer:
	./test/peer/run.sh

# Programs that others wrote for Kubernetes: client-go, controller-runtime, Helm.
clients:
	./test/clients/run.sh

lint:
	./build/lint.sh

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Our control plane beside kube-apiserver and etcd: start, memory, CPU time, watchers. About 40 minutes, on a quiet machine.
figures: build
	$(GO) run ./test/figures -bayplan bin/bayplan -reference "$$(./build/reference.sh kube-apiserver etcd)"

generate:
	$(GO) generate ./...

# Whether what is committed is what the generators write.
generated:
	./build/generated.sh

# The systems that bayplan is also built for, without real nodes.
cross:
	./build/cross.sh

clean:
	rm -rf bin $(HELPER)
