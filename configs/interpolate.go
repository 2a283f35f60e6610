package configs

import (
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

var reference = regexp.MustCompile(`\$\{env:([^}]*)\}`)

// interpolate replaces ${env:NAME} in every scalar at or below n. A name that is not set stays as it is
// and is the error: the first one, so that a section that nobody uses harms nobody.
func interpolate(n *node, path string, getenv func(string) string) (*node, error) {
	switch n.kind {
	case list:
		out := &node{kind: list, at: n.at, items: make([]*node, len(n.items))}
		var first error
		for i, item := range n.items {
			var err error
			if out.items[i], err = interpolate(item, path, getenv); first == nil {
				first = err
			}
		}
		return out, first
	case mapping:
		out := newMapping(n.at)
		var first error
		for _, key := range n.order {
			value, err := interpolate(n.fields[key], join(path, key), getenv)
			if first == nil {
				first = err
			}
			out.set(key, value)
		}
		return out, first
	}
	return interpolateScalar(n, path, getenv)
}

func interpolateScalar(n *node, path string, getenv func(string) string) (*node, error) {
	if n.expanded || !strings.Contains(n.scalar.Value, "${env:") {
		return n, nil
	}
	var err error
	value := reference.ReplaceAllStringFunc(n.scalar.Value, func(match string) string {
		name := reference.FindStringSubmatch(match)[1]
		if v := getenv(name); v != "" {
			return v
		}
		if err == nil {
			err = lateProblemf(n.at, path, "environment variable %q is not set", name)
		}
		return match
	})
	if err != nil {
		return n, err
	}
	return &node{kind: scalar, scalar: retag(n.scalar, value), at: n.at, expanded: true}, nil
}

// retag lets `num_gpu: ${env:N}` be a number. What comes from a variable is never null and never YAML.
func retag(s yaml.Node, value string) yaml.Node {
	if s.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		plain := yaml.Node{Kind: yaml.ScalarNode, Value: value}
		switch plain.ShortTag() {
		case "!!int", "!!float", "!!bool":
			return plain
		}
	}
	return yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: value}
}
