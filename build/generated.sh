#!/bin/sh
# Checks that generated files are what their generators write.
set -eu
cd "$(dirname "$0")/.."
go generate ./...
changed=$(git status --porcelain -- $(git ls-files '*zz_generated*'))
[ -z "$changed" ] || { echo "generated files are not current, run make generate and commit: $changed" >&2; exit 1; }
