#!/bin/bash
# The main job, from an image to running pods and back, without network: builds the image of examples/hello, starts a cluster with one node in a directory of its
# own, and shows what is written before each step. Needs Linux and root. Leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."
bayplan=$PWD/bin/bayplan
dir=$(mktemp -d /tmp/bayplan-demo.XXXXXX)
export KUBECONFIG=$dir/kubeconfig
up=

say() { printf '\n\033[1m# %s\033[0m\n' "$*"; }
k() { "$bayplan" kubectl "$@"; }
show() { printf '$ kubectl %s\n' "$*"; k "$@"; }
cleanup() {
	if [ -n "$up" ] && kill -TERM "$up" 2>/dev/null; then wait "$up" || true; fi
	rm -rf "$dir"
}
trap cleanup EXIT
fail() { echo "demo failed: $*" >&2; tail -20 "$dir/up.log" >&2; exit 1; }

[ "$(id -u)" = 0 ] || { echo "the demo runs real containers, which needs root: sudo make demo" >&2; exit 1; }

say "An image, made from a static binary"
CGO_ENABLED=0 go build -ldflags '-s -w' -o "$dir/hello" ./examples/hello
go run ./examples/hello/pack "$dir/hello" hello:1 "$dir/hello.tar"
"$bayplan" image load "$dir/hello.tar" --data-dir "$dir/data"
"$bayplan" image list --data-dir "$dir/data"

say "A cluster with one node"
"$bayplan" up --data-dir "$dir/data" --port 0 --kubeconfig "$KUBECONFIG" >"$dir/up.log" 2>&1 &
up=$!
until grep -q '^ready' "$dir/up.log"; do
	kill -0 "$up" 2>/dev/null || fail "the cluster did not start"
	sleep 0.1
done
cat "$dir/up.log"
show get nodes -o wide

say "Three replicas, each with requests and limits"
show apply -f examples/hello/deployment.yaml
show rollout status deployment/hello --timeout=60s
show get pods -o wide

say "Each answers on its own address"
for pod in $(k get pods -l app=hello -o jsonpath='{.items[*].metadata.name}'); do
	k get --raw "/api/v1/namespaces/default/pods/$pod:8080/proxy/"
done
show logs deployment/hello

say "A container that wants more memory than its limit is killed, and it is reported"
show apply -f examples/hello/limits.yaml
k wait pod/eater --for=jsonpath='{.status.containerStatuses[0].state.terminated.reason}'=OOMKilled --timeout=60s
show get pod eater

say "Two busy pods that ask for 100m and 300m of CPU share it 1 to 3"
k wait pod/burner-1 pod/burner-3 --for=condition=Ready --timeout=60s
examples/cpushare.sh burner-1 burner-3

say "Up and down"
k delete -f examples/hello/limits.yaml
show scale deployment/hello --replicas=5
show rollout status deployment/hello --timeout=60s
show scale deployment/hello --replicas=1
k wait deployment/hello --for=jsonpath='{.status.replicas}'=1 --timeout=60s
show get deployment,pods

say "Everything away again"
show delete -f examples/hello/deployment.yaml
k wait pod -l app=hello --for=delete --timeout=60s
show get all
id=$(printf %s "$dir/data" | sha256sum | cut -c1-8)
kill -TERM "$up"
wait "$up" || fail "the cluster did not stop in order"
up=
left=$(pgrep -f "$dir" || true; mount | grep "$dir\|/run/bayplan/$id" || true; find /sys/fs/cgroup -maxdepth 3 -path "*bayplan/$id*" 2>/dev/null || true)
[ -z "$left" ] || fail "left behind: $left"
echo "Nothing is left: no process, mount, network namespace or cgroup."
