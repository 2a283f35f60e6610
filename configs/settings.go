package configs

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"qj/jobspec"
)

// settings lists every value in force, those of sections with a problem too: that is where to look.
func (l *loader) settings(t *topLevel) {
	l.setting("assets", t.Assets)
	l.setting("default_cluster", t.DefaultCluster)
	if t.User != nil {
		l.setting("user", t.User)
	}
	for section, things := range map[string]map[string]*node{"clusters": t.Clusters, "stores": t.Stores} {
		for name, n := range maps.All(things) {
			l.setting(join(section, name), n)
		}
	}
}

func (l *loader) setting(path string, n *node) {
	switch {
	case n.null():
	case n.kind == mapping:
		for _, key := range n.order {
			l.setting(join(path, key), n.fields[key])
		}
	case n.flat():
		words := make([]string, len(n.items))
		for i, item := range n.items {
			words[i] = display(path, item.scalar.Value)
		}
		l.addSetting(path, "["+strings.Join(words, ", ")+"]", n.at)
	case n.kind == list:
		for i, item := range n.items {
			l.setting(join(path, strconv.Itoa(i)), item)
		}
	default:
		l.addSetting(path, display(path, n.scalar.Value), n.at)
	}
}

func (l *loader) addSetting(path, value string, at place) {
	l.cfg.Settings = append(l.cfg.Settings, Setting{Path: path, Value: value, Origin: at.String()})
}

func display(path, value string) string {
	if isSecret(path, value) {
		return jobspec.Secret(value).String()
	}
	return value
}

func (c *Config) storeNames() []string {
	return c.names("stores.", slices.Collect(maps.Keys(c.Stores)))
}
