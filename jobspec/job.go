// Package jobspec holds the words of qj as pure data: what somebody wants (Job), one submission of it
// (Run), one observation of that (Status), and what a node is told to do (Launch) and reports back
// (Report). It parses, expands and validates. It reads no clock, no file, no environment, and knows no
// scheduler and no store.
package jobspec

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Format is the version of every JSON document that qj keeps. A reader that meets a higher one asks
// for a newer qj.
const Format = 1

// CheckFormat says whether a document of the given format can be read by this qj.
func CheckFormat(document string, format int) error {
	if format > Format {
		return fmt.Errorf("%s has format %d, this qj reads up to %d: update qj", document, format, Format)
	}
	if format < 1 {
		return fmt.Errorf("%s has no format", document)
	}
	return nil
}

// Job is what somebody wants to run. It holds no clock, no secret and no identity: two equal Jobs ask
// for the same thing.
type Job struct {
	Name    string            `json:"name,omitempty"`
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	Secrets []string          `json:"secrets,omitempty"` // names only; the values travel by the private channel
	Tags    map[string]string `json:"tags,omitempty"`
	Code    Code              `json:"code"`
	Subdir  string            `json:"subdir,omitempty"` // where ranks start, below the root of the code
	Layout  Layout            `json:"layout"`
	Mounts  []Mount           `json:"mounts,omitempty"`
	Hold    Duration          `json:"hold,omitempty"` // how long a failed run keeps its node
}

// Code names an immutable snapshot of a folder of code.
type Code struct {
	Snapshot string `json:"snapshot"` // the snapshot's id, a hash over the tree
	Manifest string `json:"manifest"` // SHA-256 of the manifest object itself: pins the layers too
}

// Mount maps a folder of the code root to a folder that exists on the node, as `<name>_folder` does.
type Mount struct {
	Name string `json:"name"` // folder name below the code root
	Path string `json:"path"` // absolute path on the node
}

// Validate reports the first thing that makes the job impossible to run anywhere.
func (j Job) Validate() error {
	if len(j.Command) == 0 || j.Command[0] == "" {
		return fmt.Errorf("the command is empty")
	}
	if j.Subdir != "" && !fs.ValidPath(j.Subdir) {
		return fmt.Errorf("working folder %q is not below the code", j.Subdir)
	}
	for _, name := range append(slices.Sorted(maps.Keys(j.Env)), j.Secrets...) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("environment name %q is not valid", name)
		}
		if strings.ContainsRune(j.Env[name], 0) {
			return fmt.Errorf("environment variable %s holds a NUL byte", name)
		}
	}
	for _, word := range j.Command {
		switch {
		case strings.ContainsRune(word, 0):
			return fmt.Errorf("the command holds a NUL byte")
		case !utf8.ValidString(word): // a record is JSON, which would change it
			return fmt.Errorf("the command holds bytes that are not UTF-8: %q", word)
		}
	}
	return nil
}

// Duration is a time.Duration that reads and writes as "1h30m" in JSON and YAML.
type Duration time.Duration

// MarshalText writes d as time.Duration prints it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration (like 90s, 10m or 4h)", text)
	}
	*d = Duration(parsed)
	return nil
}

// Secret is a value that no printer, logger or encoder shows.
type Secret string

const masked = "***"

// String hides the value.
func (Secret) String() string { return masked }

// Format hides the value from every verb: fmt calls String for a few only, and quotes the value in its
// complaint about the others.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, masked) }

// MarshalText hides the value from JSON and YAML; Reveal is the only way to it.
func (Secret) MarshalText() ([]byte, error) { return []byte(masked), nil }

// Reveal returns the value, for the one place that delivers it.
func (s Secret) Reveal() string { return string(s) }
