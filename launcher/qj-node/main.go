//go:build unix

// Command qj-node is what nodes run: the launcher and nothing else.
package main

import (
	"os"

	"qj/launcher"
)

func main() { os.Exit(launcher.Main(os.Args[:1], os.Args[1:], os.Stderr)) }
