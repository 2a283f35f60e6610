package configs

import (
	"fmt"
	"strings"
)

// problem is an error in configuration, at the place that has to be edited.
type problem struct {
	at   place
	path string // "clusters.gpu.env", may be empty
	err  error
	late bool // matters only to whoever uses the section: an unset variable, a missing file
}

func (p *problem) Error() string {
	text := fmt.Sprintf("%s: %v", p.at, p.err)
	if p.path != "" {
		text = fmt.Sprintf("%s: %s: %v", p.at, p.path, p.err)
	}
	return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(text) // names of files and keys may hold anything
}

func (p *problem) Unwrap() error { return p.err }

func problemf(at place, path, format string, args ...any) *problem {
	return &problem{at: at, path: path, err: fmt.Errorf(format, args...)}
}

// lateProblemf is problemf for what must not keep anybody from using the other clusters.
func lateProblemf(at place, path, format string, args ...any) *problem {
	p := problemf(at, path, format, args...)
	p.late = true
	return p
}
