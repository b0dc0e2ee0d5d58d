#!/bin/sh
# Checks that the Debian packages are there that building and testing need; as root it installs what is missing.
set -eu
[ "$(uname -s)" = Linux ] || exit 0
missing=""
need() { # command or file, package
	case "$1" in
	/*) ls $1 >/dev/null 2>&1 || missing="$missing $2" ;;
	*) command -v "$1" >/dev/null 2>&1 || missing="$missing $2" ;;
	esac
}
need gcc gcc
need pkg-config pkg-config
need '/usr/lib/*/libseccomp.a' libseccomp-dev
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing$missing"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libc6-dev $missing >/dev/null
else
	echo "missing packages:$missing; install them, for example by: sudo apt-get install$missing" >&2
	exit 1
fi
