package configs

// merge lays over on top of base: mappings key by key, all else replaces. A null replaces too: it takes
// back what lies beneath.
func merge(base, over *node) *node {
	if base == nil {
		return over
	}
	if base.kind != mapping || over.kind != mapping {
		return over
	}
	out := base.clone()
	out.at = over.at
	for _, key := range over.order {
		out.set(key, merge(base.fields[key], over.fields[key]))
	}
	return out
}

// discriminators name, for the sections that hold named things, the key that says what kind of thing it
// is. Where it changes, the keys beneath mean something else, so the thing is replaced and not merged.
var discriminators = map[string]string{"clusters": "backend", "stores": "type"}

// mergeFiles lays one whole file on top of what is known so far.
func mergeFiles(base, over *node) *node {
	out := merge(base, over)
	for section, discriminator := range discriminators {
		was, is := base.get(section), over.get(section)
		switch {
		case was == nil || was.kind != mapping:
			continue
		case is == nil:
			out.set(section, was) // a section of which all is commented out takes nothing back
			continue
		case is.kind != mapping:
			continue
		}
		named := was.clone()
		for _, name := range is.order {
			named.set(name, mergeThing(was.fields[name], is.fields[name], discriminator))
		}
		out.set(section, named)
	}
	return out
}

func mergeThing(base, over *node, discriminator string) *node {
	if over.null() && base != nil {
		return base
	}
	was, is := base.text(discriminator), over.text(discriminator)
	if was != "" && is != "" && was != is {
		return over
	}
	return merge(base, over)
}

// fill sets what is not set, or null, to a default.
func fill(n *node, key string, value *node) {
	if n.get(key) == nil {
		n.set(key, value)
	}
}
