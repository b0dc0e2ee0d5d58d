#!/bin/sh
# Writes zz_generated.openapi.go: the OpenAPI descriptions of every type that the API server serves, read from the comments of
# the published types. Run by `make generate`; CI checks that the result is the committed file.
set -eu
cd "$(dirname "$0")"
versions="core/v1 apps/v1 batch/v1 autoscaling/v1 autoscaling/v2 policy/v1 networking/v1 discovery/v1 storage/v1
	storagemigration/v1 scheduling/v1 scheduling/v1alpha3 scheduling/v1beta1 coordination/v1 events/v1 node/v1 rbac/v1
	authentication/v1 authorization/v1 certificates/v1 certificates/v1beta1 admissionregistration/v1 flowcontrol/v1 resource/v1"
packages="k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version
	k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/util/intstr
	k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
for v in $versions; do packages="$packages k8s.io/api/$v"; done
go tool -modfile=../../../tools/go.mod openapi-gen --go-header-file header.txt \
	--output-dir . --output-pkg github.com/bayplan/bayplan/internal/apiserver/openapi \
	--output-file zz_generated.openapi.go --report-filename /dev/null $packages
