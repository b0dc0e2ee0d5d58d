#!/bin/sh
# Builds the pod helper as a static binary: runtime-helper/build.sh OUTPUT
#
# It needs cgo (libcontainer's first stage is C, seccomp filters are compiled by libseccomp), so it checks for what cgo needs and says
# which Debian package is missing.
set -eu

if [ $# -ne 1 ]; then
    echo "usage: $0 OUTPUT" >&2
    exit 2
fi
case $1 in
/*) output=$1 ;;
*) output=$(pwd)/$1 ;;
esac
cd "$(dirname "$0")"

missing=
command -v "${CC:-gcc}" >/dev/null 2>&1 || missing="$missing gcc"
command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"
pkg-config --exists libseccomp 2>/dev/null || missing="$missing libseccomp-dev"
if [ -n "$missing" ]; then
    echo "the pod helper cannot be built without these Debian packages: apt-get install$missing" >&2
    exit 1
fi

# The helper shares modules with the product, which may ask for newer versions of them than go.mod here says. The build follows the
# product in a copy of the file, so that it works in a tree that nobody may write to.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp go.mod "$scratch/go.mod"
cat go.sum ../go.sum >"$scratch/go.sum"

mkdir -p "$(dirname "$output")"
CGO_ENABLED=1 go build -mod=mod -modfile="$scratch/go.mod" -trimpath \
    -tags 'seccomp netgo osusergo' \
    -ldflags '-s -w -linkmode external -extldflags -static' \
    -o "$output" .
