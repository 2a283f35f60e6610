package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"qj/jobspec"
	"qj/logsync"
	"qj/runs"
)

// showRun prints one run: the last lines of rank 0, the log files, what is known of it. That is the order
// of the tool that qj replaces: what changes most comes first, the verdict stands above the prompt.
func (a *app) showRun(row runs.Row, tail int) error {
	dir, err := a.logFolder(row.ID)
	if err != nil {
		return err
	}
	if err := a.showTail(rankStream(0).LocalPath(dir), tail); err != nil {
		return err
	}
	logs := logFiles(dir)
	if len(logs) > 0 {
		fmt.Fprintln(a.Stdout, "log files:")
	}
	for _, log := range logs {
		fmt.Fprintf(a.Stdout, "  %s\n", log.Path)
	}
	var lines [][]string
	for _, fact := range a.facts(row) {
		if fact[1] != "" {
			lines = append(lines, []string{fact[0], fact[1]})
		}
	}
	return align(a.Stdout, lines, func(line, column int, cell string) string {
		if column == 1 && lines[line][0] == "state" && a.colours() {
			return stateColour(row.State()) + cell + plain
		}
		return cell
	})
}

func (a *app) showTail(path string, lines int) error {
	text, err := logsync.TailLines(path, lines)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has written nothing yet
	}
	if err != nil {
		return err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	_, err = a.Stdout.Write(text)
	return err
}

// facts are the metadata of a run, in the order in which they are shown.
func (a *app) facts(row runs.Row) [][2]string {
	rec, status := row.Record, row.Revision.Status
	layout := rec.Job.Layout
	facts := [][2]string{
		{"id", string(rec.ID)},
		{"suffix", rec.ID.Suffix()},
		{"name", rec.Job.Name},
		{"tags", mapText(rec.Job.Tags)},
		{"cluster", rec.Cluster + " (" + rec.Backend + ")"},
		{"command", commandText(rec.Job.Command)},
		{"num_gpu", strconv.Itoa(layout.NumGPU)},
		{"processes", fmt.Sprintf("%d on %s", layout.WorldSize(), count(layout.Nodes, "node"))},
		{"code", rec.Job.Code.Snapshot[:min(12, len(rec.Job.Code.Snapshot))]},
		{"submitted", timeText(rec.Submitted) + " by " + rec.User},
		{"started", timeText(status.Started)},
		{"ended", timeText(status.Ended)},
		{"elapsed", durationText(elapsed(rec, a.Now()))},
		{"folder", status.Folder},
		{"replaces", string(rec.Replaces)},
		{"replaced by", string(rec.Revision.ReplacedBy)},
	}
	if status.Exit != nil && status.Exit.Code != nil {
		facts = append(facts, [2]string{"exit code", strconv.Itoa(*status.Exit.Code)})
	}
	if rec.State().Ended() && !status.LogsComplete && !status.Started.IsZero() {
		facts = append(facts, [2]string{"logs", "incomplete: the last output did not reach the store"})
	}
	state := stateText(row)
	if status.Reason.Text != "" {
		state += ": " + oneLine(status.Reason.Text)
	}
	return append(facts, [2]string{"state", state})
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.Itoa(n) + " " + unit + "s"
}

func mapText(m map[string]string) string {
	var words []string
	for k, v := range m {
		words = append(words, k+"="+v)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// logFile is a pulled log.
type logFile struct {
	Stream string `json:"stream"` // "0/rank-3": attempt and stream
	Path   string `json:"path"`   // absolute
	Bytes  int64  `json:"bytes"`
}

// logFiles lists the logs of a run that are here: ranks in order first, then the rest. What is no log of
// ours is passed over.
func logFiles(dir string) []logFile {
	files := logsIn(dir, 0)
	entries, _ := os.ReadDir(dir) // nothing pulled yet: no logs
	for _, entry := range entries {
		number, isRestart := strings.CutPrefix(entry.Name(), "restart-")
		if attempt, err := strconv.Atoi(number); isRestart && err == nil {
			files = append(files, logsIn(filepath.Join(dir, entry.Name()), attempt)...)
		}
	}
	slices.SortFunc(files, func(a, b logFile) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return files
}

// logsIn lists the logs of one attempt.
func logsIn(dir string, attempt int) []logFile {
	var files []logFile
	entries, _ := os.ReadDir(dir) // nothing pulled yet: no logs
	for _, entry := range entries {
		name, isLog := strings.CutSuffix(entry.Name(), ".log")
		stream, err := logsync.ParseStream(fmt.Sprintf("%d/%s", attempt, name))
		if info, statErr := entry.Info(); isLog && err == nil && statErr == nil {
			files = append(files, logFile{Stream: stream.String(), Path: filepath.Join(dir, entry.Name()), Bytes: info.Size()})
		}
	}
	return files
}

// sortKey orders by attempt, ranks before the launcher's own streams, numbers by value.
func sortKey(f logFile) string {
	stream, err := logsync.ParseStream(f.Stream)
	if err != nil {
		return f.Stream
	}
	kind, number, _ := strings.Cut(stream.Name, "-")
	first := "1"
	if kind == "rank" {
		first = "0"
	}
	return fmt.Sprintf("%09d %s %s %9s", stream.Attempt, first, kind, number)
}

// verdictText is one line on how a run ended.
func verdictText(rec runs.Record) string {
	text := rec.ID.Suffix() + " " + string(rec.State())
	status := rec.Revision.Status
	if status.Reason.Text != "" {
		text += ": " + oneLine(status.Reason.Text)
	}
	said := rec.State() == jobspec.Completed || status.Reason.Code == jobspec.ReasonRankFailed // the reason has it
	if !said && status.Exit != nil && status.Exit.Code != nil {
		text += fmt.Sprintf(" (exit code %d)", *status.Exit.Code)
	}
	return text
}
