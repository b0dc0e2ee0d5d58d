#!/bin/sh
# Runs every test that this machine can run. Tests that need root, cgroups or the pod helper say so when they are skipped.
# The end-to-end tests come last and alone: they measure how CPU time is shared.
set -eu
cd "$(dirname "$0")/.."
go test -timeout 20m $(go list ./... | grep -v /test/e2e)
(cd runtime-helper && CGO_ENABLED=1 go test -mod=mod -tags 'seccomp netgo osusergo' ./...)
go test -timeout 20m ./test/e2e
