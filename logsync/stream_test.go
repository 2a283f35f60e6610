package logsync

import (
	"testing"

	"qj/blob"
)

const testRun = "runs/ann-1700000000-0a1b2c3d"

func TestParseStream(t *testing.T) {
	good := map[string]Stream{
		"0/rank-0":        {0, "rank-0"},
		"12/launcher-3":   {12, "launcher-3"},
		"999999999/a-100": {999999999, "a-100"},
	}
	for text, want := range good {
		if got, err := ParseStream(text); got != want || err != nil {
			t.Errorf("ParseStream(%q) = %v, %v, want %v", text, got, err, want)
		}
		if want.String() != text {
			t.Errorf("%#v prints as %s, want %s", want, want, text)
		}
	}
	for _, text := range []string{
		"", "/", "0", "0/", "rank-0", "/rank-0", "-1/rank-0", "+1/rank-0", "01/rank-0", "1000000000/rank-0", "0/rank", "0/rank-01",
		"0/rank--1", "0/Rank-0", "0/rank-0/", "0/../rank-0", "0/rank-0\n", "0 /rank-0", "0/rank-1000000000",
	} {
		if got, err := ParseStream(text); err == nil {
			t.Errorf("ParseStream(%q) = %v, want an error", text, got)
		}
	}
}

func TestLocalPath(t *testing.T) {
	for want, s := range map[string]Stream{"dir/rank-0.log": {0, "rank-0"}, "dir/restart-2/setup-1.log": {2, "setup-1"}} {
		if got := s.LocalPath("dir"); got != want {
			t.Errorf("LocalPath of %s = %s, want %s", s, got, want)
		}
	}
}

func TestSegmentKeys(t *testing.T) {
	key := segmentKey(testRun, Stream{1, "rank-3"}, 1<<62)
	if want := testRun + "/logs/1/rank-3/04611686018427387904"; key != want {
		t.Errorf("segmentKey = %s, want %s", key, want)
	}
	if err := blob.ValidKey(key); err != nil {
		t.Error(err)
	}
	for _, foreign := range []string{
		"", testRun, testRun + "/logs/", testRun + "/logs/1/rank-3/", testRun + "/logs/1/rank-3/5", testRun + "/logs/rank-3/00000000000000000000",
		testRun + "/logs/1/rank-3/99999999999999999999", testRun + "/logs/1/rank-3/x/00000000000000000000", "runs/other/logs/1/rank-3/00000000000000000000",
		testRun + "/logs/1/rank-3/-0000000000000000001", testRun + "/nodes/0.json",
	} {
		if s, offset, ok := parseSegmentKey(testRun, foreign); ok {
			t.Errorf("parseSegmentKey(%q) = %v, %d", foreign, s, offset)
		}
	}
}

func FuzzSegmentKey(f *testing.F) {
	f.Add("0/rank-0/00000000000000000000")
	f.Add("1/launcher-12/00000000000001048576")
	f.Add("1//00000000000001048576")
	f.Add("0/rank-0/99999999999999999999")
	f.Fuzz(func(t *testing.T, rest string) {
		key := testRun + "/logs/" + rest
		stream, offset, ok := parseSegmentKey(testRun, key)
		if !ok {
			return
		}
		if again := segmentKey(testRun, stream, offset); again != key {
			t.Errorf("%q reads as %v at %d, which is %q", key, stream, offset, again)
		}
		if offset < 0 || blob.ValidKey(key) != nil {
			t.Errorf("%q was accepted", key)
		}
	})
}

func FuzzParseStream(f *testing.F) {
	f.Add("0/rank-0")
	f.Add("00/rank-0")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseStream(text); err == nil && s.String() != text {
			t.Errorf("%q reads as %q", text, s)
		}
	})
}
