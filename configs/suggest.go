package configs

import (
	"fmt"
	"slices"
	"strings"
)

// A key within this many letters of a known one is taken for a misspelling of it.
const typoLetters = 2

// Nearest is the candidate that s most likely means, "" if none is close. A word that would have to be
// rewritten whole is not close.
func Nearest(s string, candidates []string) string {
	best, distance := "", typoLetters+1
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(s), strings.ToLower(c)); d < distance && d < min(len(s), len(c)) {
			best, distance = c, d
		}
	}
	return best
}

// didYouMean is the end of an error about an unknown word, empty when nothing is close.
func didYouMean(s string, candidates []string) string {
	if c := Nearest(s, candidates); c != "" {
		return fmt.Sprintf(", did you mean %q?", c)
	}
	return ""
}

// editDistance counts the letters to insert, delete or replace to turn a into b.
func editDistance(a, b string) int {
	if abs := len(a) - len(b); abs > typoLetters || abs < -typoLetters {
		return typoLetters + 1 // bounds the work on long keys; callers care for small distances only
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(previous[j]+cost, previous[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
