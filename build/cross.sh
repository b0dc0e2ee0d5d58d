#!/bin/sh
# Builds for the other systems that bayplan runs on (everything but real nodes).
set -eu
cd "$(dirname "$0")/.."
for target in linux/arm64 darwin/arm64 windows/amd64; do
	echo "building for $target"
	GOOS=${target%/*} GOARCH=${target#*/} CGO_ENABLED=0 go build -o /dev/null ./cmd/bayplan
	GOOS=${target%/*} GOARCH=${target#*/} CGO_ENABLED=0 go build ./testcluster
done
