package jobspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Launch is all that a launcher on a node is told, by one document that is the same on every node. Its
// secrets travel apart (see Private).
type Launch struct {
	Format      int      `json:"format"`
	Run         RunID    `json:"run"`
	User        string   `json:"user"`
	Job         Job      `json:"job"`
	Store       StoreRef `json:"store"`
	Grace       Duration `json:"grace"`        // between TERM and KILL
	JoinTimeout Duration `json:"join_timeout"` // how long nodes wait for each other
	Slots       *Slots   `json:"slots,omitempty"`
}

// StoreRef tells a node how to reach the blob store.
type StoreRef struct {
	Type   string `json:"type"` // "file": a folder that the node sees
	Path   string `json:"path,omitempty"`
	Prefix string `json:"prefix,omitempty"` // before every key
}

// Slots makes a run wait, first come first served, until it holds Need of the machine's slots. Slots are
// lock files in Dir: one per GPU of the machine, or Count numbered ones.
type Slots struct {
	Dir    string `json:"dir"`
	Ticket string `json:"ticket"` // the place in the queue: tickets are served in byte order
	Need   int    `json:"need"`
	GPUs   bool   `json:"gpus,omitempty"`
	Count  int    `json:"count,omitempty"` // without GPUs
}

// Private is what travels to a node by the platform's private channel only. It is the one type whose
// JSON shows secrets, so it is never part of a record, a plan or a message.
type Private struct {
	Key     Secret            // 32 random bytes, hex: the nodes of a run know each other by it
	Secrets map[string]Secret // by environment name
}

type revealed struct {
	Key     string            `json:"key"`
	Secrets map[string]string `json:"secrets,omitempty"`
}

// Reveal encodes p with its secrets readable.
func (p Private) Reveal() ([]byte, error) {
	r := revealed{Key: p.Key.Reveal(), Secrets: map[string]string{}}
	for name, value := range p.Secrets {
		r.Secrets[name] = value.Reveal()
	}
	return json.Marshal(r)
}

// ParsePrivate reads what Reveal wrote.
func ParsePrivate(b []byte) (Private, error) {
	var r revealed
	if err := json.Unmarshal(b, &r); err != nil {
		return Private{}, errors.New("parse private values: not the JSON that was written") // never quote it
	}
	p := Private{Key: Secret(r.Key), Secrets: map[string]Secret{}}
	for name, value := range r.Secrets {
		p.Secrets[name] = Secret(value)
	}
	return p, nil
}

// Report is what one node tells of itself. Node 0 speaks for the whole run: its Status is the run's.
type Report struct {
	Format  int       `json:"format"`
	Run     RunID     `json:"run"`
	Node    int       `json:"node"`
	Host    string    `json:"host"`
	At      time.Time `json:"at"`
	Address string    `json:"address,omitempty"` // node 0: where the others find its coordinator
	Status  Status    `json:"status"`
}

// ParseReport reads a Report that a node left in the store.
func ParseReport(body []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(body, &r); err != nil {
		return Report{}, fmt.Errorf("parse a node's report: %w", err)
	}
	return r, CheckFormat("a node's report", r.Format)
}

// The files of a run that launcher and backend both know. The boot folder is private to the user (0700)
// and the same for every node; the work folder belongs to one node.
const (
	LaunchFile    = "launch.json"    // boot: the Launch
	PrivateFile   = "private.json"   // boot: the Private, revealed; 0600
	ReportFile    = "report.json"    // work: the node's newest Report
	ProcessesFile = "processes.json" // work: who runs the node, for signals and liveness
	ShellFile     = "shell.json"     // work: how rank 0 of the node was started; 0600, holds its environment
)

// Environment variables that the launcher gives to every rank, and by which all that a run started can
// be found again on a machine.
const (
	EnvRunID   = "QJ_RUN_ID"
	EnvRestart = "QJ_RESTART"
)

// ShellPlace is where and how rank 0 of a node was started: what `ssh` repeats.
type ShellPlace struct {
	Dir string   `json:"dir"`
	Env []string `json:"env"`
}
