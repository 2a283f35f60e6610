package configs

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

var secretWords = []string{
	"key", "token", "secret", "password", "passwd", "pass", "sas", "credential", "credentials", "apikey", "connection",
}

// secretName says whether a setting or variable of this name holds a secret.
func secretName(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c == '_' || c == '-' })
	return !slices.Contains(words, "public") && slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) })
}

// secretValue finds what is a secret wherever it stands: a signature in a URL, a password in one.
var secretValue = regexp.MustCompile(`(?i)[?&]sig=|AccountKey=|://[^/@\s]+:[^/@\s]+@`)

// isSecret judges a setting by its path and its value.
func isSecret(path, value string) bool {
	leaf := path[strings.LastIndexByte(path, '.')+1:]
	return value != "" && (secretName(leaf) || secretValue.MatchString(value))
}

// exposed warns when a file with secrets in it can be read by others.
func exposed(root *node, src *source) []string {
	// Windows has no such bits: every file shows as readable by all.
	if src.file == "" || src.mode.Perm()&0o077 == 0 || runtime.GOOS == "windows" {
		return nil
	}
	found := false
	root.walk("", func(path string, n *node) {
		literal := !n.null() && !reference.MatchString(n.scalar.Value)
		found = found || literal && isSecret(path, n.scalar.Value)
	})
	if !found {
		return nil
	}
	return []string{fmt.Sprintf("%s holds secrets and others can read it: chmod 600 %s", src.name, shellWord(src.file))}
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./@%+=:,-]+$`)

func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
