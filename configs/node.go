package configs

import (
	"fmt"
	"io/fs"
	"slices"

	"gopkg.in/yaml.v3"
)

// node is a piece of configuration that remembers where it was written. Nodes are never changed once
// read: merging and interpolating make new ones, so that one file may be part of several sections.
type node struct {
	kind     kind
	scalar   yaml.Node        // kind scalar
	items    []*node          // kind list
	fields   map[string]*node // kind mapping
	order    []string         // the mapping's keys as written
	at       place
	expanded bool // the scalar came out of ${env:NAME}: never expanded again, and no secret lies in the file
}

type kind int

const (
	scalar kind = iota
	list
	mapping
)

func (k kind) String() string {
	return map[kind]string{scalar: "a single value", list: "a list", mapping: "a mapping of keys to values"}[k]
}

// source is where configuration was read: a file, a flag, a variable, or qj's own defaults.
type source struct {
	name string      // as messages show it: "qj.yaml", "-p", "default"
	file string      // absolute; empty when it is no file
	dir  string      // where its relative paths start
	seed bool        // one of the files of the tool before qj, which took any key
	mode fs.FileMode // of the file
}

// place is a line of a source.
type place struct {
	src  *source
	line int
}

func (p place) String() string {
	if p.src.file == "" || p.line == 0 {
		return p.src.name
	}
	return fmt.Sprintf("%s:%d", p.src.name, p.line)
}

func newMapping(at place) *node {
	return &node{kind: mapping, fields: map[string]*node{}, at: at}
}

func newScalar(value string, at place) *node {
	n := &node{kind: scalar, at: at}
	n.scalar.SetString(value)
	return n
}

// plainScalar makes a value that reads as it would in YAML without quotes: a number, true, false.
func plainScalar(value string, at place) *node {
	return &node{kind: scalar, scalar: yaml.Node{Kind: yaml.ScalarNode, Value: value}, at: at}
}

// set adds or replaces a key; only for mappings that nobody else has seen yet.
func (n *node) set(key string, value *node) {
	if _, there := n.fields[key]; !there {
		n.order = append(n.order, key)
	}
	n.fields[key] = value
}

// get finds a value below n by keys; nil if there is none, or it is null.
func (n *node) get(keys ...string) *node {
	for _, key := range keys {
		if n == nil || n.kind != mapping {
			return nil
		}
		n = n.fields[key]
	}
	if n.null() {
		return nil
	}
	return n
}

// text is the value of a scalar below n, "" if there is none.
func (n *node) text(keys ...string) string {
	if v := n.get(keys...); v != nil && v.kind == scalar {
		return v.scalar.Value
	}
	return ""
}

func (n *node) null() bool {
	return n == nil || n.kind == scalar && n.scalar.ShortTag() == "!!null"
}

// clone copies a mapping one level deep, for set.
func (n *node) clone() *node {
	c := newMapping(n.at)
	for _, key := range n.order {
		c.set(key, n.fields[key])
	}
	return c
}

// walk calls visit for every scalar at or below n with its path, in the order written.
func (n *node) walk(path string, visit func(path string, n *node)) {
	switch n.kind {
	case scalar:
		visit(path, n)
	case list:
		for i, item := range n.items {
			item.walk(join(path, fmt.Sprint(i)), visit)
		}
	case mapping:
		for _, key := range n.order {
			n.fields[key].walk(join(path, key), visit)
		}
	}
}

// yaml turns n back into what the YAML library decodes.
func (n *node) yaml() *yaml.Node {
	switch n.kind {
	case list:
		out := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range n.items {
			out.Content = append(out.Content, item.yaml())
		}
		return out
	case mapping:
		out := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range n.order {
			name := &yaml.Node{}
			name.SetString(key)
			out.Content = append(out.Content, name, n.fields[key].yaml())
		}
		return out
	}
	s := n.scalar
	return &s
}

// flat says whether n is a list of scalars only.
func (n *node) flat() bool {
	return n.kind == list && !slices.ContainsFunc(n.items, func(i *node) bool { return i.kind != scalar })
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
