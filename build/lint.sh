#!/bin/sh
# Format, vet, staticcheck, and whether generated files and go.mod are current.
set -eu
cd "$(dirname "$0")/.."
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { echo "not formatted, run gofmt -w: $unformatted" >&2; exit 1; }
go mod tidy -diff
go vet ./...
go tool -modfile=tools/go.mod staticcheck ./...
(cd runtime-helper && CGO_ENABLED=1 go vet -mod=mod -tags 'seccomp netgo osusergo' ./... && git diff --exit-code -- go.mod go.sum)
for script in $(git ls-files '*.sh') .ci/run; do sh -n "$script"; done
