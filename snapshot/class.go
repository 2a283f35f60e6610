package snapshot

import "strings"

// readClass reads a bracket expression such as [a-z], [!0-9] or [[:alpha:]_] at the start of text, and
// returns its length.
func readClass(text string) (set *[256]bool, length int, ok bool) {
	c := classReader{text: text, at: 1}
	negated := c.at < len(text) && (text[c.at] == '!' || text[c.at] == '^')
	if negated {
		c.at++
	}
	// A bracket that comes first stands for itself.
	for first := true; first || c.at < len(text) && text[c.at] != ']'; first = false {
		if c.at >= len(text) || !c.item() {
			return nil, 0, false
		}
	}
	if c.at >= len(text) {
		return nil, 0, false
	}
	for b := range c.set {
		c.set[b] = c.set[b] != negated
	}
	c.set['/'] = false
	return &c.set, c.at + 1, true
}

type classReader struct {
	text string
	at   int
	prev byte // the last single byte, which a "-" may make a range of; 0 = none
	set  [256]bool
}

// item reads one byte, range or named class.
func (c *classReader) item() bool {
	b := c.text[c.at]
	next := c.text[c.at+1:]
	if b == '-' && c.prev != 0 && next != "" && next[0] != ']' {
		c.at++
		high, ok := c.single()
		for v := int(c.prev); ok && v <= int(high); v++ {
			c.set[v] = true
		}
		c.prev = 0
		return ok
	}
	if b == '[' && strings.HasPrefix(next, ":") {
		end := strings.IndexByte(next[1:], ']')
		if end < 0 {
			return false
		}
		if name := next[1 : 1+end]; strings.HasSuffix(name, ":") {
			c.at += len("[:") + end + len("]")
			c.prev = 0
			return c.named(strings.TrimSuffix(name, ":"))
		}
	}
	b, ok := c.single()
	c.set[b] = ok
	c.prev = b
	return ok
}

// single reads one byte, which a backslash may protect.
func (c *classReader) single() (byte, bool) {
	if c.text[c.at] == '\\' {
		c.at++
	}
	if c.at >= len(c.text) {
		return 0, false
	}
	c.at++
	return c.text[c.at-1], true
}

func (c *classReader) named(name string) bool {
	in, ok := classes()[name]
	if !ok {
		return false
	}
	for b := range 128 {
		if in(byte(b)) {
			c.set[b] = true
		}
	}
	return true
}

// classes are the POSIX character classes, over ASCII as git has them.
func classes() map[string]func(byte) bool {
	digit := func(b byte) bool { return b >= '0' && b <= '9' }
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	lower := func(b byte) bool { return b >= 'a' && b <= 'z' }
	alpha := func(b byte) bool { return upper(b) || lower(b) }
	alnum := func(b byte) bool { return alpha(b) || digit(b) }
	graph := func(b byte) bool { return b > ' ' && b < 0x7f }
	return map[string]func(byte) bool{
		"digit": digit, "upper": upper, "lower": lower, "alpha": alpha, "alnum": alnum, "graph": graph,
		"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
		"cntrl":  func(b byte) bool { return b < ' ' || b == 0x7f },
		"print":  func(b byte) bool { return b == ' ' || graph(b) },
		"punct":  func(b byte) bool { return graph(b) && !alnum(b) },
		"space":  func(b byte) bool { return strings.IndexByte(" \t\n\v\f\r", b) >= 0 },
		"xdigit": func(b byte) bool { return digit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' },
	}
}
