// Package e2e tries the built qj as people and machines treat it: real training, shells side by side, and
// processes killed at any moment. QJ_BIN names the binary; `make test` sets it.
package e2e
