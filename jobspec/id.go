package jobspec

import (
	"fmt"
	"regexp"
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

var runID = regexp.MustCompile(`^([a-z][a-z0-9-]{0,23})-([0-9]{1,12})-([0-9a-f]{8})$`)

// NewRunID builds an id from a user part as UserPart gives it, the time of submission and four random bytes.
func NewRunID(user string, at time.Time, random [4]byte) RunID {
	return RunID(fmt.Sprintf("%s-%d-%x", user, at.Unix(), random))
}

// ParseRunID accepts a whole id only.
func ParseRunID(s string) (RunID, error) {
	if !runID.MatchString(s) {
		return "", fmt.Errorf("%q is not a run id (<user>-<unix seconds>-<8 hex>)", s)
	}
	return RunID(s), nil
}

// User is the part of the id before the time.
func (id RunID) User() string {
	if m := runID.FindStringSubmatch(string(id)); m != nil {
		return m[1]
	}
	return ""
}

// Time is when the run was submitted, to the second.
func (id RunID) Time() time.Time {
	m := runID.FindStringSubmatch(string(id))
	if m == nil {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
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
