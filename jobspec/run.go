package jobspec

import (
	"fmt"
	"time"
)

// Run is one submission of a Job, as it was submitted. It is written once and never changes; what
// happens to it later are Revisions.
type Run struct {
	Format    int       `json:"format"`
	ID        RunID     `json:"id"`
	User      string    `json:"user"`
	Host      string    `json:"host,omitempty"` // where it was submitted
	Cluster   string    `json:"cluster"`
	Backend   string    `json:"backend"`
	Submitted time.Time `json:"submitted"`
	Job       Job       `json:"job"`
	Replaces  RunID     `json:"replaces,omitempty"` // set by resubmit
	Version   string    `json:"version,omitempty"`  // of the qj that submitted it
}

// RunFolder is where all objects of a run lie in its store.
func RunFolder(id RunID) string { return "runs/" + string(id) }

// ReportKey is where a node's Report lies in the store.
func ReportKey(id RunID, node int) string {
	return fmt.Sprintf("%s/nodes/%d.json", RunFolder(id), node)
}

// Handle is a scheduler's own name for a job, opaque to all but its backend.
type Handle string

// Revision is what is known of a run at one moment. The one with the highest number counts; number 0 is
// never stored and means: submitted, nothing known yet.
type Revision struct {
	Format     int       `json:"format"`
	Number     int       `json:"number"`
	At         time.Time `json:"at"`
	By         string    `json:"by,omitempty"` // user@host of the qj that wrote it
	Handle     Handle    `json:"handle,omitempty"`
	Status     Status    `json:"status"`
	Abort      *Abort    `json:"abort,omitempty"`
	ReplacedBy RunID     `json:"replaced_by,omitempty"`
}

// Abort is somebody's request to stop a run.
type Abort struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Status is one observation of a run.
type Status struct {
	State   State            `json:"state"`
	Raw     string           `json:"raw,omitempty"` // the platform's own word
	Reason  Reason           `json:"reason,omitzero"`
	Started time.Time        `json:"started,omitzero"` // ranks began
	Ended   time.Time        `json:"ended,omitzero"`
	Exit    *Exit            `json:"exit,omitempty"`
	Streams map[string]int64 `json:"streams,omitempty"` // final length in bytes by "<attempt>/<stream>", once ended
	Folder  string           `json:"folder,omitempty"`  // where node 0's ranks ran, if a person can get there
	Stalled bool             `json:"stalled,omitempty"`

	// LogsComplete says, of an ended run, that all of its streams are in the store up to their last byte.
	LogsComplete bool `json:"logs_complete,omitempty"`
}

// Exit tells which rank decided the run's end, and how. The rank that failed first decides; ranks that
// the launcher stopped never do. A completed run has code 0 and no blame.
type Exit struct {
	Code   *int     `json:"code"` // null when no rank ended by itself: Reason tells
	Rank   int      `json:"rank"`
	Node   int      `json:"node"`
	Signal int      `json:"signal,omitempty"`
	Lines  []string `json:"lines,omitempty"` // the rank's last lines
}
