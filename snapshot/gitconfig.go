package snapshot

import "strings"

// configValue finds the last value of a key in a git configuration file. It reads what git writes and
// people type there, without include directives. Section and key are given in lower case.
func configValue(content []byte, section, key string) (value string, ok bool) {
	text := strings.ReplaceAll(string(content), "\\\n", "") // a line that goes on
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if rest, isHeader := strings.CutPrefix(line, "["); isHeader {
			name, after, _ := strings.Cut(rest, "]")
			inside = strings.EqualFold(strings.TrimSpace(name), section)
			line = strings.TrimSpace(after)
		}
		name, raw, _ := strings.Cut(line, "=")
		if inside && strings.EqualFold(strings.TrimSpace(name), key) {
			value, ok = unquote(strings.TrimSpace(raw)), true
		}
	}
	return value, ok
}

// unquote drops the quotes and the comment of a value.
func unquote(raw string) string {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(raw):
			i++
			out.WriteByte(raw[i])
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(out.String())
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}
