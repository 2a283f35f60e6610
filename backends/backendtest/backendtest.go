// Package backendtest holds every promise of backends.Backend as a test, to be run on each backend and on
// each wrapper around one. It knows no scheduler: it submits small shell commands and looks at what a
// backend says of them, and at what their launcher left in the store.
package backendtest

import (
	"testing"
	"time"

	"qj/backends"
	"qj/blob"
	"qj/jobspec"
)

// Harness is what a backend brings to be tested.
type Harness struct {
	// Open returns a backend that has seen nothing yet, for a scheduler that may have: what one of them
	// submitted, every other one has to know.
	Open func(t *testing.T) backends.Backend

	Store    blob.Store       // where runs find their code and leave their logs
	StoreRef jobspec.StoreRef // the same store, as a node reaches it

	Poll     time.Duration // how often to ask for a status
	Patience time.Duration // bounds every wait; none takes as long unless something is wrong

	Can Capabilities // a backend has those that are true, and no other
}

// Capabilities are the optional interfaces of package backends.
type Capabilities struct {
	Resolver, Sheller, Finder, Poller bool
}

// Run checks the whole contract.
func Run(t *testing.T, h Harness) {
	s := New(t, h)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *Suite)
	}{
		{"Capabilities", capabilities},
		{"PlanIsPure", planIsPure},
		{"PlanHidesSecrets", planHidesSecrets},
		{"Completes", completes},
		{"FailsWithCodeAndRank", failsWithCodeAndRank},
		{"CommandNotFound", commandNotFound},
		{"SeveralNodes", severalNodes},
		{"SubmitTwice", submitTwice},
		{"SubmitTwiceAtOnce", submitTwiceAtOnce},
		{"SubmitAfterEnd", submitAfterEnd},
		{"StatusOfMany", statusOfMany},
		{"FoundByRunID", foundByRunID},
		{"CancelRunning", cancelRunning},
		{"CancelEnded", cancelEnded},
		{"CancelUnknown", cancelUnknown},
		{"SecretsArrive", secretsArrive},
		{"Shell", shell},
		{"EndedContext", endedContext},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, s)
		})
	}
}

type wrapped struct{ backends.Backend }

func (w wrapped) Unwrap() backends.Backend { return w.Backend }

// capabilities are as announced, and are found through wrappers.
func capabilities(t *testing.T, s *Suite) {
	plain := s.Open(t)
	for depth, b := range []backends.Backend{plain, wrapped{plain}, wrapped{wrapped{plain}}} {
		var has Capabilities
		_, has.Resolver = backends.As[backends.Resolver](b)
		_, has.Sheller = backends.As[backends.Sheller](b)
		_, has.Finder = backends.As[backends.Finder](b)
		_, has.Poller = backends.As[backends.Poller](b)
		if has != s.Can {
			t.Errorf("below %d wrappers it has %+v, want %+v", depth, has, s.Can)
		}
	}
	if p, ok := backends.As[backends.Poller](plain); ok && p.PollEvery() <= 0 {
		t.Errorf("poll every %s", p.PollEvery())
	}
}
