// Package embedded carries the node binaries inside the client, gzipped, so that a client on any system
// can send the one that a node needs. `make build` puts them into nodes/; without them the package still
// compiles and has nothing to offer. It does not know what the binaries do or how they are sent.
package embedded

import "embed"

// The folder holds a page of text too: a pattern must match some file in a fresh clone.
//
//go:embed nodes
var nodes embed.FS

// Node returns the gzipped qj-node for a system, in Go's words for it, and false if this client was built
// without one.
func Node(goos, goarch string) (gz []byte, ok bool) {
	gz, err := nodes.ReadFile("nodes/qj-node-" + goos + "-" + goarch + ".gz")
	return gz, err == nil
}
