package snapshot

import "strings"

// glob is a compiled wildcard expression in git's language, over bytes.
type glob []token

type token struct {
	kind tokenKind
	char byte       // of a literal
	set  *[256]bool // of a one
}

type tokenKind int8

const (
	literal tokenKind = iota
	one               // any byte of a set: "?", "[…]"
	star              // any bytes but slashes: "*"
	deep              // any bytes: "**" as the last part of a path
	folders           // nothing, or any bytes up to and with a slash: "**/"
)

// compileGlob reads an expression; false means that it is malformed and can never match.
func compileGlob(text string) (glob, bool) {
	var g glob
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '\\':
			if i+1 == len(text) {
				return nil, false
			}
			g = append(g, token{kind: literal, char: text[i+1]})
			i += 2
		case '?':
			g = append(g, token{kind: one, set: anyButSlash()})
			i++
		case '*':
			kind, length := readStars(text, i)
			g = append(g, token{kind: kind})
			i += length
		case '[':
			set, length, ok := readClass(text[i:])
			if !ok {
				return nil, false
			}
			g = append(g, token{kind: one, set: set})
			i += length
		default:
			g = append(g, token{kind: literal, char: c})
			i++
		}
	}
	return g, true
}

// readStars tells what the asterisks at i mean. Two or more span folders only as a whole part of a path.
func readStars(text string, i int) (tokenKind, int) {
	rest := strings.TrimLeft(text[i:], "*")
	length := len(text) - i - len(rest)
	whole := length > 1 && (i == 0 || text[i-1] == '/')
	switch {
	case whole && strings.HasPrefix(rest, "/"):
		return folders, length + 1
	case whole && (rest == "" || strings.HasPrefix(rest, `\/`)):
		return deep, length
	default:
		return star, length
	}
}

// match runs all ways through the expression at once, so its time is bounded by the product of the two
// lengths, whatever the asterisks.
func (g glob) match(text string) bool {
	if first := len(g) - 1; first >= 0 && g[0].kind == star && g[1:].plain() {
		return len(text) >= first && g[1:].equal(text[len(text)-first:]) && !strings.Contains(text[:len(text)-first], "/")
	}
	now, then := make([]bool, len(g)+1), make([]bool, len(g)+1)
	g.reach(now, 0)
	for i := range len(text) {
		clear(then)
		alive := false
		for at, t := range g {
			if now[at] && g.step(then, at, t, text[i]) {
				alive = true
			}
		}
		if !alive {
			return false
		}
		now, then = then, now
	}
	return now[len(g)]
}

// reach marks the place at and those that are reached from it without a byte.
func (g glob) reach(places []bool, at int) {
	for places[at] = true; at < len(g) && g[at].kind >= star; {
		at++
		places[at] = true
	}
}

// step marks where one byte leads from the place at.
func (g glob) step(then []bool, at int, t token, c byte) bool {
	switch {
	case t.kind == literal && t.char == c, t.kind == one && t.set[c]:
		g.reach(then, at+1)
	case t.kind == deep, t.kind == star && c != '/':
		g.reach(then, at)
	case t.kind == folders:
		then[at] = true // going on needs a slash now
		if c == '/' {
			g.reach(then, at)
		}
	default:
		return false
	}
	return true
}

// plain says whether g is text without wildcards, as after the asterisk of "*.pyc".
func (g glob) plain() bool {
	for _, t := range g {
		if t.kind != literal {
			return false
		}
	}
	return true
}

func (g glob) equal(text string) bool {
	for i, t := range g {
		if t.char != text[i] {
			return false
		}
	}
	return true
}

func anyButSlash() *[256]bool {
	var set [256]bool
	for c := range set {
		set[c] = c != '/'
	}
	return &set
}
