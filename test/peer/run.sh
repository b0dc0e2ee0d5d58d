#!/bin/sh
# run.sh [FLAGS]: compares Bayplan's scheduler with kube-scheduler, in some minutes. Without flags from a fixed seed; run.sh -seed $RANDOM
# compares other worlds. See decisions_test.go for the flags.
set -e
cd "$(dirname "$0")"
CGO_ENABLED=0 go vet .
exec env CGO_ENABLED=0 go test -count 1 -timeout 20m -v . -args "$@"
