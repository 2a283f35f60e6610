package snapshot

import (
	"bytes"
	"fmt"
	"strings"
)

// pattern is one line of an ignore file.
type pattern struct {
	source  string // file:line: text, to tell why
	negated bool   // the line began with "!"
	onlyDir bool   // it ended with "/"
	base    bool   // it holds no other "/" and is matched against the last part of a path
	literal string // what a path must begin with, before any wildcard
	glob    glob   // the rest; nil if there is no rest
	never   bool   // malformed: matches nothing
}

// parsePatterns reads an ignore file as git does, see gitignore(5). The name is for messages.
func parsePatterns(name string, content []byte) []pattern {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	var patterns []pattern
	number := 0
	for line := range strings.SplitSeq(string(content), "\n") {
		number++
		line = trimLine(line)
		if line == "" || line[0] == '#' {
			continue
		}
		p := parsePattern(line)
		p.source = fmt.Sprintf("%s:%d: %s", name, number, line)
		patterns = append(patterns, p)
	}
	return patterns
}

// trimLine drops a carriage return and the spaces at the end that no backslash protects.
func trimLine(line string) string {
	line = strings.TrimSuffix(line, "\r")
	line, _, _ = strings.Cut(line, "\x00") // git's strings end there
	end := 0
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
			end = min(i+1, len(line))
		case line[i] != ' ':
			end = i + 1
		}
	}
	return line[:end]
}

func parsePattern(text string) pattern {
	var p pattern
	text, p.negated = strings.CutPrefix(text, "!")
	text, p.onlyDir = strings.CutSuffix(text, "/")
	p.base = !strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	// The literal part is cut off before wildcards are read, as git does: it decides what a "**" after it
	// means.
	wild := strings.IndexAny(text, `*?[\`)
	if wild < 0 {
		p.literal = text
		return p
	}
	if p.base {
		wild = 0 // compared with a whole name, not a prefix of a path
	}
	p.literal = text[:wild]
	var ok bool
	p.glob, ok = compileGlob(text[wild:])
	p.never = !ok
	return p
}

// match says whether the pattern fits a path relative to the folder of its file.
func (p *pattern) match(path string, dir bool) bool {
	if p.never || p.onlyDir && !dir {
		return false
	}
	if p.base {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	if p.glob == nil {
		return path == p.literal
	}
	rest, ok := strings.CutPrefix(path, p.literal)
	return ok && p.glob.match(rest)
}

// list is one ignore file: the last line that matches decides.
type list struct {
	prefix   int // length of the folder's path, which the patterns are relative to, with its slash
	patterns []pattern
}

func (l *list) find(path string, dir bool) *pattern {
	for i := len(l.patterns) - 1; i >= 0; i-- {
		if p := &l.patterns[i]; p.match(path[l.prefix:], dir) {
			return p
		}
	}
	return nil
}
