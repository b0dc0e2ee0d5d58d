#!/bin/bash
# Measures over three seconds how much CPU time two pods got, from their cgroups (v1 or v2): cpushare.sh POD POD
set -euo pipefail
bayplan=$(dirname "$0")/../bin/bayplan
usage() { # nanoseconds of CPU that a pod has used
	local uid file
	uid=$("$bayplan" kubectl get pod "$1" -o jsonpath='{.metadata.uid}')
	for file in $(find /sys/fs/cgroup -path "*pod$uid/cpuacct.usage" 2>/dev/null); do
		cat "$file"
		return
	done
	awk '/^usage_usec/ {print $2 * 1000}' "$(find /sys/fs/cgroup -path "*pod$uid/cpu.stat" | head -1)"
}
a=$(usage "$1") b=$(usage "$2")
sleep 3
a=$(($(usage "$1") - a)) b=$(($(usage "$2") - b))
awk -v a="$a" -v b="$b" -v an="$1" -v bn="$2" 'BEGIN {
	printf "%s: %.2f s, %s: %.2f s of CPU in 3 s: 1 to %.2f\n", an, a / 1e9, bn, b / 1e9, b / a }'
