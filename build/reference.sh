#!/usr/bin/env bash
# Builds programs of the Kubernetes project, which tests use as tools and as oracles, into a cache outside the tree, and prints the cache's folder.
#   build/reference.sh e2e.test ginkgo kubectl kube-apiserver kube-controller-manager kube-scheduler agnhost etcd
# A program that is in the cache already is not built again. BAYPLAN_REFERENCE names another folder.
set -euo pipefail
cd "$(dirname "$0")/../test/conformance"
version=$(sed -n 's/^require k8s.io\/kubernetes //p' go.mod)
cache=${BAYPLAN_REFERENCE:-${XDG_CACHE_HOME:-$HOME/.cache}/bayplan-reference}/$version
mkdir -p "$cache"
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false"
number=${version#v}
minor=${number#*.}
stamp=k8s.io/component-base/version
ldflags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=${number%%.*} -X $stamp.gitMinor=${minor%%.*} -X $stamp.gitTreeState=clean"
for program in "$@"; do
	out=$cache/$program
	[ -e "$out" ] && continue
	echo "building $program $version" >&2
	case $program in
	e2e.test) go test -c -ldflags "$ldflags" -o "$out.new" k8s.io/kubernetes/test/e2e ;;
	ginkgo) go build -ldflags '-s -w' -o "$out.new" github.com/onsi/ginkgo/v2/ginkgo ;;
	agnhost) go build -ldflags '-s -w' -o "$out.new" k8s.io/kubernetes/test/images/agnhost ;;
	etcd) go build -ldflags '-s -w' -o "$out.new" go.etcd.io/etcd/server/v3 ;;
	kubectl | kube-*) go build -ldflags "$ldflags" -o "$out.new" "k8s.io/kubernetes/cmd/$program" ;;
	*)
		echo "unknown program $program" >&2
		exit 1
		;;
	esac
	mv "$out.new" "$out"
done
echo "$cache"
