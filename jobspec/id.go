package jobspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RunID names one run everywhere: `<user>-<unix seconds>-<8 hex>`.
type RunID string

// SuffixLength is how much of an id people type: `qj q e2fc7`.
const SuffixLength = 5

const maxUser = 24

// NewRunID builds an id from a user part as UserPart gives it, the time of submission and four random bytes.
func NewRunID(user string, at time.Time, random [4]byte) RunID {
	return RunID(fmt.Sprintf("%s-%d-%x", user, at.Unix(), random))
}

// ParseRunID accepts a whole id only.
func ParseRunID(s string) (RunID, error) {
	if _, _, ok := RunID(s).split(); !ok {
		return "", fmt.Errorf("%q is not a run id (<user>-<unix seconds>-<8 hex>)", s)
	}
	return RunID(s), nil
}

// split takes a well-formed id apart. Tables do it for every run there ever was, so it is no regexp.
func (id RunID) split() (user string, seconds int64, ok bool) {
	const most = 12 // digits of the seconds
	rest, hex, found := cutLast(string(id))
	user, digits, found2 := cutLast(rest)
	if !found || !found2 || len(hex) != 8 || len(digits) == 0 || len(digits) > most || len(user) > maxUser ||
		strings.Trim(hex, "0123456789abcdef") != "" || strings.Trim(digits, "0123456789") != "" ||
		user == "" || user[0] < 'a' || user[0] > 'z' || strings.Trim(user, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", 0, false
	}
	seconds, err := strconv.ParseInt(digits, 10, 64)
	return user, seconds, err == nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// User is the part of the id before the time.
func (id RunID) User() string {
	user, _, _ := id.split()
	return user
}

// Time is when the run was submitted, to the second.
func (id RunID) Time() time.Time {
	_, seconds, ok := id.split()
	if !ok {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// Suffix is the end of the id that people type.
func (id RunID) Suffix() string { return string(id[max(0, len(id)-SuffixLength):]) }

// Reversed spells the id backwards, so that a suffix is a prefix of a store's listing.
func (id RunID) Reversed() string { return Reverse(string(id)) }

// Reverse spells an ASCII string backwards; it is its own inverse.
func Reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// UserPart turns a login name into the user part of an id: lower case, letters, digits and dashes, a
// letter first, at most 24 characters.
func UserPart(login string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(login) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9' && b.Len() > 0:
			b.WriteRune(c)
		case b.Len() > 0:
			b.WriteByte('-')
		}
		if b.Len() == maxUser {
			break
		}
	}
	if part := strings.Trim(b.String(), "-"); part != "" {
		return part
	}
	return "user"
}
