package jobspec

import "time"

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
	Type string `json:"type"` // "file": a folder that the node sees
	Path string `json:"path,omitempty"`
}

// Slots makes a run wait, first come first served, until it holds Need of the machine's slots. Slots are
// lock files in Dir: one per GPU if the machine has GPUs, else Count numbered ones.
type Slots struct {
	Dir   string `json:"dir"`
	Need  int    `json:"need"`
	Count int    `json:"count,omitempty"` // without GPUs; 0 = no limit
}

// Private is what travels to a node by the platform's private channel only.
type Private struct {
	Key     Secret            // 32 random bytes, hex: the nodes of a run know each other by it
	Secrets map[string]Secret // by environment name
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
