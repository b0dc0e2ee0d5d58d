// Package openapi holds the OpenAPI definitions of every type that the API server serves. They describe the API in /openapi/v3, which
// `kubectl explain` reads, and give server-side apply the structure of each kind.
package openapi

//go:generate ./generate.sh
