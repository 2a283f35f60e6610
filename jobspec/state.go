package jobspec

import "slices"

// State is where a run stands, the same word on every platform.
type State string

// The states, in the order in which a run usually meets them.
const (
	Submitting State = "submitting" // recorded, the scheduler has not accepted it yet
	Queued     State = "queued"     // accepted, waits for machines
	Preparing  State = "preparing"  // has machines; image, code, set-up steps
	Running    State = "running"    // ranks run
	Finishing  State = "finishing"  // ranks ended; last logs ship, or the node is held for ssh
	Completed  State = "completed"
	Failed     State = "failed"
	Preempted  State = "preempted" // the platform took the machines back
	Canceled   State = "canceled"
	Lost       State = "lost" // nobody knows of it any more; the only end that may come back
)

var (
	open = []State{Submitting, Queued, Preparing, Running, Finishing}
	ends = []State{Completed, Failed, Preempted, Canceled, Lost}
)

// States lists every state, open ones first.
func States() []State { return slices.Concat(open, ends) }

// Ended says whether the run is over.
func (s State) Ended() bool { return slices.Contains(ends, s) }

// CanBecome says whether a run in state s may be observed in state next. Staying is always legal. An
// observation out of order (a late "queued" after "finishing") is not, and is dropped by who reads it.
func (s State) CanBecome(next State) bool {
	if s == next {
		return true
	}
	return slices.Contains(moves[s], next)
}

// A run never goes back to submitting. From preparing and running it may fall back to queued: a
// scheduler may requeue, and a restart prepares again.
var moves = map[State][]State{
	Submitting: slices.Concat([]State{Queued, Preparing, Running, Finishing}, ends),
	Queued:     slices.Concat([]State{Preparing, Running, Finishing}, ends),
	Preparing:  slices.Concat([]State{Queued, Running, Finishing}, ends),
	Running:    slices.Concat([]State{Queued, Preparing, Finishing}, ends),
	Finishing:  slices.Concat([]State{Preparing}, ends),
	Lost:       {Queued, Preparing, Running, Finishing, Completed, Failed, Preempted, Canceled},
}

// Reason says in one word of a fixed table why a run is in its state, and in a sentence what exactly.
type Reason struct {
	Code ReasonCode `json:"code,omitempty"`
	Text string     `json:"text,omitempty"`
}

// ReasonCode is one word of the fixed table below.
type ReasonCode string

// The table. A backend adds a line here rather than a word of its own.
const (
	ReasonWaiting         ReasonCode = "waiting"           // queued: for GPUs or slots that others hold; finishing: for the store
	ReasonSubmitFailed    ReasonCode = "submit_failed"     // the scheduler refused it
	ReasonSetupFailed     ReasonCode = "setup_failed"      // code, mounts or a set-up step
	ReasonCommandNotFound ReasonCode = "command_not_found" // rank could not be started: 127, or 126 if not executable
	ReasonRankFailed      ReasonCode = "rank_failed"       // a rank ended with a code other than 0
	ReasonRankKilled      ReasonCode = "rank_killed"       // a rank was ended by a signal that was not ours
	ReasonNodesMissing    ReasonCode = "nodes_missing"     // not all nodes came within the limit
	ReasonNodeLost        ReasonCode = "node_lost"         // a node stopped answering
	ReasonLauncherDied    ReasonCode = "launcher_died"     // the launcher was killed from outside
	ReasonRebooted        ReasonCode = "machine_rebooted"
	ReasonTerminated      ReasonCode = "terminated" // the launcher was asked to stop by SIGTERM, and nobody aborted the run
	ReasonAborted         ReasonCode = "aborted"
	ReasonHeld            ReasonCode = "held" // finishing: the node is kept for ssh
	ReasonUnknownJob      ReasonCode = "unknown_job"
)
