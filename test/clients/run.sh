#!/bin/sh
# Runs these tests. Modules that Bayplan uses too are taken at its versions (those that go.mod replaces), so that both share compiled packages: otherwise a
# newer golang.org/x/sys has everything compiled a second time.
set -eu
cd "$(dirname "$0")"
export CGO_ENABLED=0
for module in $(sed -n 's/^replace \([^ ]*\) => .* v.*/\1/p' go.mod); do
	version=$(sed -n "s|^[[:space:]]*$module \(v[^ ]*\).*|\1|p" ../../go.mod)
	[ -z "$version" ] || go mod edit -replace "$module=$module@$version"
done
exec go test -mod=mod -timeout 10m "$@" ./...
