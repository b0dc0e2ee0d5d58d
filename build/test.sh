#!/bin/sh
# Runs every test that this machine can run. Tests that need root, cgroups or the pod helper say so when they are skipped.
set -eu
cd "$(dirname "$0")/.."
go test -timeout 20m ./...
(cd runtime-helper && CGO_ENABLED=1 go test -mod=mod -tags 'seccomp netgo osusergo' ./...)
