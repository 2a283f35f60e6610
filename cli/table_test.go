//go:build unix

package cli

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"qj/jobspec"
	"qj/runs"
)

func row(id string, state jobspec.State) runs.Row {
	var r runs.Row
	r.ID = jobspec.RunID(id)
	r.Revision.Number, r.Revision.Status.State = 1, state
	return r
}

func TestSuffixes(t *testing.T) {
	tests := []struct{ ids, want string }{
		{"ann-1-aaaaaaaa", "aaaaa"},
		{"ann-1-aaaaaaaa ann-1-bbbbbbbb", "aaaaa bbbbb"},
		{"ann-1-00011111 ann-1-22211111", "011111 211111"},
		{"ann-1-00011111 ann-1-22011111 ann-1-33333333", "0011111 2011111 33333"},
		{"ann-1-00011111 ann-2-00011111", "1-00011111 2-00011111"},
		{"ann-1-00011111 ann-1-00011111", "11111 11111"}, // one run, twice
	}
	for _, test := range tests {
		var rows []runs.Row
		var want []string
		for _, id := range strings.Fields(test.ids) {
			rows = append(rows, row(id, jobspec.Running))
		}
		short := suffixes(rows)
		for _, r := range rows {
			want = append(want, short[r.ID])
		}
		if got := strings.Join(want, " "); got != test.want {
			t.Errorf("suffixes(%s) = %s, want %s", test.ids, got, test.want)
		}
	}
}

func TestFold(t *testing.T) {
	id := column{name: "id", value: func(r runs.Row) string { return string(r.ID) }, never: true}
	state := column{name: "state", value: func(r runs.Row) string { return string(r.State()) }}
	same := column{name: "cluster", value: func(runs.Row) string { return "gpu" }}
	empty := column{name: "name", value: func(runs.Row) string { return "" }}
	all := []column{id, same, empty, state}
	a, b, c := row("a", jobspec.Running), row("b", jobspec.Running), row("c", jobspec.Failed)
	tests := []struct {
		rows []runs.Row
		said string
		kept string
	}{
		{[]runs.Row{a}, "", "id cluster state"},
		{[]runs.Row{a, b}, "cluster: gpu  state: running", "id"},
		{[]runs.Row{a, c}, "cluster: gpu", "id state"},
		{[]runs.Row{a, a}, "cluster: gpu  state: running", "id"},
	}
	for _, test := range tests {
		said, kept := fold(all, test.rows)
		var names []string
		for _, column := range kept {
			names = append(names, column.name)
		}
		if said != test.said || strings.Join(names, " ") != test.kept {
			t.Errorf("fold of %d rows: %q, %v, want %q, %s", len(test.rows), said, names, test.said, test.kept)
		}
	}
}

func TestStateText(t *testing.T) {
	r := row("a", jobspec.Running)
	r.Revision.Status.Stalled = true
	r.Revision.Abort = &jobspec.Abort{}
	r.Stale = 90 * time.Second
	if got := stateText(r); got != "running, stalled, aborting (1m30s ago)" {
		t.Errorf("stateText = %q", got)
	}
	ended := row("a", jobspec.Canceled)
	ended.Revision.Abort = &jobspec.Abort{}
	if got := stateText(ended); got != "canceled" {
		t.Errorf("stateText of an aborted run that has ended = %q", got)
	}
}

func TestElapsed(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	now := start.Add(time.Hour)
	tests := []struct {
		state          jobspec.State
		started, ended time.Time
		want           time.Duration
	}{
		{jobspec.Queued, time.Time{}, time.Time{}, 0},
		{jobspec.Running, start, time.Time{}, time.Hour},
		{jobspec.Completed, start, start.Add(time.Minute), time.Minute},
		{jobspec.Lost, start, time.Time{}, 0},
		{jobspec.Failed, time.Time{}, start, 0},
	}
	for _, test := range tests {
		r := row("a", test.state)
		r.Revision.Status.Started, r.Revision.Status.Ended = test.started, test.ended
		if got := elapsed(r.Record, now); got != test.want {
			t.Errorf("elapsed of a %s run = %v, want %v", test.state, got, test.want)
		}
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59*time.Second + 999*time.Millisecond: "59s", time.Minute: "1m00s",
		61 * time.Second: "1m01s", time.Hour - 1: "59m59s", time.Hour: "1h00m", 90 * time.Minute: "1h30m",
		24 * time.Hour: "1d00h", 49*time.Hour + time.Minute: "2d01h", 1000 * time.Hour: "41d16h",
	} {
		if got := durationText(d); got != want {
			t.Errorf("durationText(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 KB", 1_500_000: "1.5 MB", 2_000_000_000: "2.0 GB", 3e12: "3.0 TB", 4e15: "4000.0 TB",
	} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %s, want %s", n, got, want)
		}
	}
}

// A shell reads what commandText shows back as the same words.
func TestCommandTextRoundTrips(t *testing.T) {
	for _, words := range [][]string{
		{"python", "train.py", "--lr=0.1", "-n", "8"},
		{"sh", "-c", `echo "$HOME" 'it''s' \n`},
		{"a b", "", "*", "?", "~", "#x", "a;b", "a|b>c<d&", "`x`", "$(x)", "!", "{a,b}", "[x]", "(y)", "=z", "-"},
		{"it's", "'", "''", `\`, `\'`, `"`},
		{"line\none", "tab\tbed", "ümläut", "日本", " "},
	} {
		out, err := exec.Command("sh", "-c", `for w in `+commandText(words)+`; do printf '%s\0' "$w"; done`).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
			t.Errorf("sh reads %s as %q, want %q", commandText(words), got, words)
		}
	}
	if got := commandText([]string{"python", "a=b", "x/y.z:1,2@3%4+5_6-7"}); strings.Contains(got, "'") {
		t.Errorf("commandText quotes what needs no quotes: %s", got)
	}
}

func TestClip(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", ""}, {"short", "short"}, {"12345678", "12345678"}, {"123456789", "1234567…"},
		{"äöüäöüäö", "äöüäöüäö"}, {"äöüäöüäöü", "äöüäöüä…"}, {"a\nb\tc\x1b[", "a b c ["},
	}
	for _, test := range tests {
		if got := clip(test.text, 8); got != test.want {
			t.Errorf("clip(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestAlign(t *testing.T) {
	var out bytes.Buffer
	lines := [][]string{{"id", "name", "state"}, {"a", "", "x"}, {"bbb", "ümläut", "yy"}}
	painted := func(line, column int, cell string) string {
		if line == 1 && column == 0 {
			return "<" + cell + ">" // like a colour: takes no room
		}
		return cell
	}
	if err := align(&out, lines, painted); err != nil {
		t.Fatal(err)
	}
	if want := "id   name    state\n<a>            x\nbbb  ümläut  yy\n"; out.String() != want {
		t.Errorf("align:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestLogsAreSortedByAttemptThenRank(t *testing.T) {
	want := []string{"0/rank-0", "0/rank-2", "0/rank-10", "0/launcher-0", "0/launcher-1", "0/setup-0", "1/rank-0", "10/rank-0"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b string) int {
		return strings.Compare(sortKey(logFile{Stream: a}), sortKey(logFile{Stream: b}))
	})
	if !slices.Equal(got, want) {
		t.Errorf("sorted: %v, want %v", got, want)
	}
}

func TestPairs(t *testing.T) {
	over, err := pairs("--env", []string{"A=1", "B=", "C=x=y, z", "A=2"}, map[string]string{"A": "0", "D": "4"})
	if want := "A=2 B= C=x=y, z D=4"; err != nil || mapText(over) != want {
		t.Errorf("pairs = %s, %v, want %s", mapText(over), err, want)
	}
	if none, err := pairs("--tag", nil, nil); none != nil || err != nil {
		t.Errorf("pairs of nothing = %v, %v", none, err)
	}
	for _, word := range []string{"A", "=1", ""} {
		if _, err := pairs("--tag", []string{word}, nil); err == nil {
			t.Errorf("pairs takes %q", word)
		}
	}
}

func TestVerdictText(t *testing.T) {
	code := 137
	exit := &jobspec.Exit{Code: &code}
	tests := []struct {
		status jobspec.Status
		want   string
	}{
		{jobspec.Status{State: jobspec.Completed, Exit: exit}, "aaaaa completed"},
		{jobspec.Status{State: jobspec.Lost}, "aaaaa lost"},
		{jobspec.Status{State: jobspec.Failed, Exit: exit, Reason: jobspec.Reason{Code: jobspec.ReasonRankKilled, Text: "killed\nby 9"}}, "aaaaa failed: killed; by 9 (exit code 137)"},
		{jobspec.Status{State: jobspec.Failed, Exit: exit, Reason: jobspec.Reason{Code: jobspec.ReasonRankFailed, Text: "code 137"}}, "aaaaa failed: code 137"},
		{jobspec.Status{State: jobspec.Failed, Exit: &jobspec.Exit{}, Reason: jobspec.Reason{Text: "no code"}}, "aaaaa failed: no code"},
	}
	for _, test := range tests {
		var rec runs.Record
		rec.ID = "ann-1-aaaaaaaa"
		rec.Revision.Number, rec.Revision.Status = 1, test.status
		if got := verdictText(rec); got != test.want {
			t.Errorf("verdictText = %q, want %q", got, test.want)
		}
	}
}
