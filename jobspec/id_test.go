package jobspec

import (
	"strings"
	"testing"
	"time"
)

func TestNewRunID(t *testing.T) {
	at := time.Date(2024, 5, 6, 7, 8, 9, 999, time.UTC)
	id := NewRunID("ann-b", at, [4]byte{0, 0x0a, 0xe2, 0xfc})
	if want := RunID("ann-b-1714979289-000ae2fc"); id != want {
		t.Fatalf("got %s, want %s", id, want)
	}
	if id.User() != "ann-b" || !id.Time().Equal(at.Truncate(time.Second)) || id.Suffix() != "ae2fc" {
		t.Errorf("parts of %s: user %s, time %s, suffix %s", id, id.User(), id.Time(), id.Suffix())
	}
	if id.Reversed() != "cf2ea000-9829794171-b-nna" {
		t.Errorf("reversed %s", id.Reversed())
	}
}

func TestParseRunID(t *testing.T) {
	for s, ok := range map[string]bool{
		"ann-1714979289-0123abcd": true,
		"a-0-00000000":            true,
		"a-b-c-1-2-12345678":      true, // user a-b-c-1
		strings.Repeat("a", 24) + "-1714979289-0123abcd": true,
		strings.Repeat("a", 25) + "-1714979289-0123abcd": false,
		"":                            false,
		"abcde":                       false,
		"-1714979289-0123abcd":        false,
		"1a-1714979289-0123abcd":      false,
		"Ann-1714979289-0123abcd":     false,
		"ann-1714979289-0123ABCD":     false,
		"ann-1714979289-0123abc":      false,
		"ann-1714979289-0123abcde":    false,
		"ann--0123abcd":               false,
		"ann-1234567890123-0123abcd":  false,
		"ann-1714979289-0123abcd\n":   false,
		"ann_b-1714979289-0123abcd":   false,
		"../ann-1714979289-0123abcd":  false,
		"ann-1714979289-0123abcd/..":  false,
		"änn-1714979289-0123abcd":     false,
		"ann-1714979289-0123abcd.zip": false,
	} {
		if _, err := ParseRunID(s); (err == nil) != ok {
			t.Errorf("ParseRunID(%q): %v", s, err)
		}
	}
}

func TestPartsOfWhatIsNoID(t *testing.T) {
	for _, id := range []RunID{"", "abc", "ann-x-0123abcd"} {
		if id.User() != "" || !id.Time().IsZero() {
			t.Errorf("%q has user %q and time %s", id, id.User(), id.Time())
		}
	}
	if s := RunID("abc").Suffix(); s != "abc" {
		t.Errorf("suffix of a short one: %q", s)
	}
}

func TestUserPart(t *testing.T) {
	for login, want := range map[string]string{
		"ann":                          "ann",
		"Ann.Example":                  "ann-example",
		`CORP\ann`:                     "corp-ann",
		"ann@example.com":              "ann-example-com",
		"_svc_":                        "svc",
		"007bond":                      "bond",
		"x":                            "x",
		"":                             "user",
		"123":                          "user",
		"___":                          "user",
		"日本":                           "user",
		"jörg":                         "j-rg",
		"a123456789012345678901234567": "a12345678901234567890123",
		strings.Repeat("a-", 20):       strings.Repeat("a-", 11) + "a",
	} {
		if got := UserPart(login); got != want {
			t.Errorf("UserPart(%q) = %q, want %q", login, got, want)
		}
	}
}

func FuzzParseRunID(f *testing.F) {
	for _, seed := range []string{"ann-1714979289-0123abcd", "a-b-1-2-00000000", "a--1-ffffffff", "", "-", "a-1-0123abcd\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if Reverse(Reverse(s)) != s {
			t.Errorf("Reverse is not its own inverse on %q", s)
		}
		id, err := ParseRunID(s)
		if err != nil {
			return
		}
		if string(id) != s || !strings.HasSuffix(s, id.Suffix()) || !strings.HasPrefix(id.Reversed(), Reverse(id.Suffix())) {
			t.Errorf("%q parsed as %q", s, id)
		}
		if id.User() == "" || len(id.User()) > maxUser || !strings.HasPrefix(s, id.User()+"-") {
			t.Errorf("user of %q: %q", s, id.User())
		}
		if id.Time().IsZero() && !strings.Contains(s, "-0") {
			t.Errorf("time of %q: %s", s, id.Time())
		}
	})
}

func FuzzUserPart(f *testing.F) {
	for _, seed := range []string{"ann", "Ann.Example", "1", "-", "ÅÄÖ", "a\x00b", strings.Repeat("z.", 30), "K"} {
		f.Add(seed, int64(1714979289), uint32(7))
	}
	f.Fuzz(func(t *testing.T, login string, unix int64, random uint32) {
		at := time.Unix(max(0, unix%1e12), 0)
		id := NewRunID(UserPart(login), at, [4]byte{byte(random), byte(random >> 8), byte(random >> 16), byte(random >> 24)})
		if _, err := ParseRunID(string(id)); err != nil {
			t.Fatalf("user %q makes a bad id: %v", login, err)
		}
		if id.User() != UserPart(login) || !id.Time().Equal(at) {
			t.Errorf("id %s of %q at %d gives back %q and %s", id, login, at.Unix(), id.User(), id.Time())
		}
		if UserPart(id.User()) != id.User() {
			t.Errorf("UserPart changes its own result %q", id.User())
		}
	})
}
