package configs

import (
	"errors"

	"gopkg.in/yaml.v3"
)

// Words is a list of words where the seed's files also hold a single one.
type Words []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *Words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = Words{n.Value}
		return nil
	}
	var list []string
	if n.Decode(&list) != nil {
		return errors.New("want a word or a list of words")
	}
	*w = list
	return nil
}
