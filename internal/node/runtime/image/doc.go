// Package image is the store of container images: one per machine, shared by every node of every cluster on it and by the command line.
//
// An image comes in from a registry (Pull) or an archive in docker's or OCI's form (Load). Both give the same thing, a config and a
// list of layers, which ingest.go takes apart: every layer is unpacked once into a directory of its own, named by its chain id (the
// digest of it and of all below it), checked against its digest on the way, and moved into place when complete. The image then gets its line
// in the index. A container's root file system is an overlay of the layers' directories with a writable one on top (Mount).
//
//	ROOT/index.json          images: id (the config's digest), names, layers, config
//	ROOT/layers/CHAINID/fs   unpacked layers, as overlay lower directories
//	ROOT/leases/NAME.json    who needs which layers: containers, and ingestions in progress
//	ROOT/tmp/                what is not complete; emptied by Collect
//	ROOT/lock                flock, held while the index or the set of layers changes
//
// Several processes may use a store at once: the index is replaced as a whole under the lock, layers appear by rename, and nothing is
// deleted that an image or a lease names.
package image
