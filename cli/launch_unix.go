//go:build unix

package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"qj/launcher"
	"qj/launcher/embedded"
)

// launch lets the client play the node's part where it carries no node binary: `qj launch` is qj-node.
func (a *app) launch() error {
	if code := launcher.Main(a.Args[:2], a.Args[2:], a.Stderr); code != 0 {
		return exitCode(code)
	}
	return nil
}

// nodeProgram is the launcher for this machine: the embedded one, which unpack brings into the cache folder
// once per version, or this very program.
func (a *app) nodeProgram() (argv []string, unpack func() error, err error) {
	packed, ok := embedded.Node(runtime.GOOS, runtime.GOARCH)
	if !ok {
		self, err := os.Executable()
		if err != nil {
			return nil, nil, fmt.Errorf("find launcher: %w", err)
		}
		return []string{self, launchVerb}, func() error { return nil }, nil
	}
	// The checksum and size with which gzip ends tell versions apart; a hash over megabytes would cost every
	// command milliseconds.
	const trailer = 8
	version := hex.EncodeToString(packed[max(0, len(packed)-trailer):])
	path := filepath.Join(a.cacheDir(), "bin", version, "qj-node")
	unpack = func() error {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return nil
		}
		if err := unpackProgram(packed, path); err != nil {
			return fmt.Errorf("unpack launcher: %w", err)
		}
		return nil
	}
	return []string{path}, unpack, nil
}

// unpackProgram makes the file appear whole: others may be unpacking or running it.
func unpackProgram(packed []byte, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // after the rename there is nothing to remove
	_, err = io.Copy(temp, r)
	if err == nil {
		err = temp.Chmod(0o700)
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
