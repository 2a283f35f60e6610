package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"gopkg.in/yaml.v3"
)

// A file of configuration is small. The limits turn a wrong file name, or aliases that multiply, into an
// error instead of a full memory.
const (
	maxFile  = 1 << 20
	maxNodes = 50_000
	maxDepth = 100
)

// parse reads one YAML (or JSON) document. Warnings are what the seed's files may hold and qj.yaml may not.
func parse(text []byte, src *source) (root *node, warnings []string, err error) {
	if len(text) > maxFile {
		return nil, nil, problemf(place{src, 0}, "", "larger than %d bytes: not a configuration file", maxFile)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, syntaxError(src, text, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, nil, problemf(place{src, 0}, "", "more than one YAML document")
	}
	b := builder{src: src}
	if len(doc.Content) == 0 {
		return newMapping(place{src, 1}), nil, nil
	}
	root, err = b.build(doc.Content[0], place{src, doc.Content[0].Line}, 0)
	if err != nil {
		return nil, nil, err
	}
	if root.null() {
		root = newMapping(root.at)
	}
	if root.kind != mapping {
		return nil, nil, problemf(root.at, "", "want %v, not %v", mapping, root.kind)
	}
	return root, b.warnings, nil
}

var (
	yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	// Of what is wrong in the grammar, other than in a word, the library counts lines from 0.
	countsFromZero = regexp.MustCompile(`^did not find expected (key|node content|'|<)`)
)

// syntaxError puts the file before the line that the YAML library found.
func syntaxError(src *source, text []byte, err error) error {
	message := oneLine(err)
	line := 0
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		fmt.Sscan(m[1], &line) // no number means the first line
		message = message[len(m[0]):]
	}
	if line == 0 || countsFromZero.MatchString(message) {
		line++
	}
	line = min(line, bytes.Count(bytes.TrimRight(text, "\r\n"), []byte("\n"))+1)
	return problemf(place{src, line}, "", "%s", message)
}

// builder turns the library's nodes into ours: aliases and merge keys resolved, duplicates found.
type builder struct {
	src      *source
	count    int
	warnings []string
}

func (b *builder) build(y *yaml.Node, at place, depth int) (*node, error) {
	if b.count++; b.count > maxNodes || depth > maxDepth {
		return nil, problemf(at, "", "too large or too deep for a configuration file")
	}
	switch y.Kind {
	case yaml.AliasNode:
		return b.build(y.Alias, at, depth+1)
	case yaml.SequenceNode:
		n := &node{kind: list, at: at}
		for _, item := range y.Content {
			child, err := b.build(item, place{b.src, item.Line}, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, child)
		}
		return n, nil
	case yaml.MappingNode:
		return b.mapping(y, at, depth)
	}
	s := yaml.Node{Kind: yaml.ScalarNode, Tag: y.Tag, Value: y.Value, Style: y.Style}
	return &node{kind: scalar, scalar: s, at: at}, nil
}

func (b *builder) mapping(y *yaml.Node, at place, depth int) (*node, error) {
	n := newMapping(at)
	inherited := newMapping(at)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, here := y.Content[i], place{b.src, y.Content[i].Line}
		value, err := b.build(y.Content[i+1], here, depth+1)
		if err != nil {
			return nil, err
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, problemf(here, "", "a key must be a single word")
		case key.ShortTag() == "!!merge":
			if err := inherit(inherited, value); err != nil {
				return nil, err
			}
			continue
		}
		if before, twice := n.fields[key.Value]; twice {
			if !b.src.seed {
				return nil, problemf(here, "", "key %q is already set on line %d", key.Value, before.at.line)
			}
			b.warnings = append(b.warnings, fmt.Sprintf("%v: key %q is already set on line %d; the last one counts", here, key.Value, before.at.line))
		}
		n.set(key.Value, value)
	}
	for _, key := range inherited.order {
		if _, own := n.fields[key]; !own {
			n.set(key, inherited.fields[key])
		}
	}
	return n, nil
}

// inherit adds what `<<: *anchor` names; of a list of anchors the first wins.
func inherit(into, from *node) error {
	switch from.kind {
	case mapping:
		for _, key := range from.order {
			if _, there := into.fields[key]; !there {
				into.set(key, from.fields[key])
			}
		}
		return nil
	case list:
		for _, item := range from.items {
			if item.kind != mapping {
				return problemf(item.at, "", "<< wants mappings")
			}
			if err := inherit(into, item); err != nil {
				return err
			}
		}
		return nil
	}
	return problemf(from.at, "", "<< wants a mapping")
}
