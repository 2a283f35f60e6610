package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"qj/jobspec"
	"qj/runs"
)

// runJSON is a run as -o json shows it. docs/json.md describes it; fields are added, never renamed.
type runJSON struct {
	ID           jobspec.RunID      `json:"id"`
	Suffix       string             `json:"suffix"`
	Name         string             `json:"name,omitempty"`
	Tags         map[string]string  `json:"tags,omitempty"`
	Cluster      string             `json:"cluster"`
	Backend      string             `json:"backend"`
	Store        string             `json:"store"`
	User         string             `json:"user"`
	State        jobspec.State      `json:"state"`
	Stalled      bool               `json:"stalled"`
	Reason       jobspec.ReasonCode `json:"reason"`
	ReasonText   string             `json:"reason_text"`
	StateRaw     string             `json:"state_raw"`
	StaleSeconds float64            `json:"stale_seconds"`
	Command      []string           `json:"command"`
	NumGPU       int                `json:"num_gpu"`
	Nodes        int                `json:"nodes"`
	ProcsPerNode int                `json:"procs_per_node"`
	Submitted    time.Time          `json:"submitted"`
	Started      *time.Time         `json:"started"`
	Ended        *time.Time         `json:"ended"`
	Elapsed      float64            `json:"elapsed_seconds"`
	Snapshot     string             `json:"snapshot"`
	Subdir       string             `json:"subdir"`
	Folder       string             `json:"folder,omitempty"`
	Logs         []logFile          `json:"logs"`
	LogsComplete bool               `json:"logs_complete"`
	Exit         *exitJSON          `json:"exit"`
	Abort        *jobspec.Abort     `json:"abort"`
	Replaces     jobspec.RunID      `json:"replaces,omitempty"`
	ReplacedBy   jobspec.RunID      `json:"replaced_by,omitempty"`
}

// exitJSON is how a run ended: null in a run that has not, or that no rank decided.
type exitJSON struct {
	Code   *int     `json:"code"`
	Rank   int      `json:"rank"`
	Node   int      `json:"node"`
	Signal int      `json:"signal"`
	Lines  []string `json:"lines"`
}

func (a *app) runJSON(row runs.Row) runJSON {
	rec, status := row.Record, row.Revision.Status
	out := runJSON{
		ID: rec.ID, Suffix: rec.ID.Suffix(), Name: rec.Job.Name, Tags: rec.Job.Tags,
		Cluster: rec.Cluster, Backend: rec.Backend, Store: rec.Store, User: rec.User,
		State: rec.State(), Stalled: status.Stalled, Reason: status.Reason.Code, ReasonText: status.Reason.Text,
		StateRaw: status.Raw, StaleSeconds: row.Stale.Seconds(), Command: rec.Job.Command,
		NumGPU: rec.Job.Layout.NumGPU, Nodes: rec.Job.Layout.Nodes, ProcsPerNode: rec.Job.Layout.ProcsPerNode,
		Submitted: rec.Submitted, Started: timeJSON(status.Started), Ended: timeJSON(status.Ended),
		Elapsed: elapsed(rec, a.Now()).Seconds(), Snapshot: rec.Job.Code.Snapshot, Subdir: rec.Job.Subdir,
		Folder: status.Folder, Logs: []logFile{}, LogsComplete: status.LogsComplete, Abort: rec.Revision.Abort,
		Replaces: rec.Replaces, ReplacedBy: rec.Revision.ReplacedBy,
	}
	if dir, err := a.logFolder(rec.ID); err == nil {
		out.Logs = append(out.Logs, logFiles(dir)...)
	}
	if e := status.Exit; e != nil {
		out.Exit = &exitJSON{Code: e.Code, Rank: e.Rank, Node: e.Node, Signal: e.Signal, Lines: append([]string{}, e.Lines...)}
	}
	return out
}

func (a *app) runsJSON(rows []runs.Row) []runJSON {
	list := make([]runJSON, len(rows))
	for i, row := range rows {
		list[i] = a.runJSON(row)
	}
	return list
}

func timeJSON(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print json: %w", err)
	}
	return nil
}
