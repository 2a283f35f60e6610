package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"qj/jobspec"
	"qj/runs"
)

// column is one column of a table of runs.
type column struct {
	name  string
	value func(runs.Row) string
	never bool // never folded: without it a row means nothing
}

// printTable prints rows. A column in which all rows agree stands once, in a line above.
func (a *app) printTable(rows []runs.Row) error {
	short := suffixes(rows)
	columns := []column{
		{name: "id", value: func(r runs.Row) string { return short[r.ID] }, never: true},
		{name: "cluster", value: func(r runs.Row) string { return r.Cluster }},
		{name: "name", value: func(r runs.Row) string { return clip(r.Job.Name, nameWidth) }},
		{name: "state", value: stateText},
		{name: "gpus", value: func(r runs.Row) string { return strconv.Itoa(r.Job.Layout.NumGPU) }},
		{name: "elapsed", value: func(r runs.Row) string { return durationText(elapsed(r.Record, a.Now())) }},
		{name: "age", value: func(r runs.Row) string { return durationText(a.Now().Sub(r.Submitted)) }},
		{name: "command", value: func(r runs.Row) string { return clip(commandText(r.Job.Command), commandWidth) }},
	}
	folded, columns := fold(columns, rows)
	if folded != "" {
		fmt.Fprintln(a.Stdout, folded)
	}
	var lines [][]string
	var head []string
	for _, c := range columns {
		head = append(head, c.name)
	}
	lines = append(lines, head)
	for _, row := range rows {
		var line []string
		for _, c := range columns {
			line = append(line, c.value(row))
		}
		lines = append(lines, line)
	}
	return align(a.Stdout, lines, a.paint(columns, rows))
}

const (
	commandWidth = 60
	nameWidth    = 24
)

// fold takes out the columns in which all of several rows agree, and says what they hold. One that is
// empty everywhere is just left out.
func fold(columns []column, rows []runs.Row) (string, []column) {
	var said []string
	var kept []column
	for _, c := range columns {
		first := c.value(rows[0])
		differs := slices.ContainsFunc(rows, func(r runs.Row) bool { return c.value(r) != first })
		switch {
		case c.never || differs || len(rows) == 1 && first != "":
			kept = append(kept, c)
		case first != "":
			said = append(said, c.name+": "+first)
		}
	}
	return strings.Join(said, "  "), kept
}

// suffixes is what to type for each run: five characters, more where two of the rows end alike.
func suffixes(rows []runs.Row) map[jobspec.RunID]string {
	short := map[jobspec.RunID]string{}
	for _, row := range rows {
		n := jobspec.SuffixLength
		for _, other := range rows {
			for other.ID != row.ID && n < len(row.ID) && strings.HasSuffix(string(other.ID), string(row.ID[len(row.ID)-n:])) {
				n++
			}
		}
		short[row.ID] = string(row.ID[max(0, len(row.ID)-n):])
	}
	return short
}

func stateText(r runs.Row) string {
	text := string(r.State())
	if r.Revision.Status.Stalled {
		text += ", stalled"
	}
	if r.Revision.Abort != nil && !r.State().Ended() {
		text += ", aborting"
	}
	if r.Stale > 0 {
		text += fmt.Sprintf(" (%s ago)", durationText(r.Stale))
	}
	return text
}

// elapsed is how long the run ran, or has run so far.
func elapsed(r runs.Record, now time.Time) time.Duration {
	s := r.Revision.Status
	switch {
	case s.Started.IsZero():
		return 0
	case r.State().Ended() && !s.Ended.IsZero():
		return s.Ended.Sub(s.Started)
	case r.State().Ended():
		return 0
	}
	return now.Sub(s.Started)
}

// durationText is short: two units at most.
func durationText(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// commandText shows a command so that a shell would read it back as the same words.
func commandText(words []string) string {
	shown := make([]string, len(words))
	for i, word := range words {
		shown[i] = word
		plain := func(r rune) bool {
			return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r)
		}
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
			shown[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(shown, " ")
}

// clip shortens a text for a table.
func clip(text string, width int) string {
	if text = printable(text); utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// printable keeps a text in one line, and has nothing in it that a terminal would act on.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// align prints lines with columns of even width. paint may colour a cell that has its width already.
func align(w io.Writer, lines [][]string, paint func(line, column int, cell string) string) error {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			line[i] = printable(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, line := range lines {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == len(line)-1 {
				pad = ""
			} else {
				pad += "  "
			}
			b.WriteString(paint(n, i, cell) + pad)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// paint colours states, on a terminal.
func (a *app) paint(columns []column, rows []runs.Row) func(line, column int, cell string) string {
	if !a.colours() {
		return func(_, _ int, cell string) string { return cell }
	}
	return func(line, column int, cell string) string {
		if line == 0 || columns[column].name != "state" {
			return cell
		}
		return stateColour(rows[line-1].State()) + cell + plain
	}
}

func stateColour(s jobspec.State) string {
	switch s {
	case jobspec.Completed:
		return green
	case jobspec.Failed, jobspec.Lost, jobspec.Preempted:
		return red
	case jobspec.Running:
		return plain
	}
	return yellow
}
