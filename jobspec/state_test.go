package jobspec

import "testing"

// The whole table: a row says what a state may become. Lower case letters stand for the states in the
// order of States().
func TestMoves(t *testing.T) {
	const letters = "sqprfCFPXL" // submitting queued preparing running finishing Completed Failed Preempted canceled(X) Lost
	table := map[State]string{
		Submitting: "sqprfCFPXL",
		Queued:     "-qprfCFPXL",
		Preparing:  "-qprfCFPXL",
		Running:    "-qprfCFPXL",
		Finishing:  "--p-fCFPXL",
		Completed:  "-----C----",
		Failed:     "------F---",
		Preempted:  "-------P--",
		Canceled:   "--------X-",
		Lost:       "-qprfCFPXL",
	}
	states := States()
	if len(states) != len(letters) || len(table) != len(letters) {
		t.Fatalf("%d states, %d rows", len(states), len(table))
	}
	for _, from := range states {
		for i, to := range states {
			if got, want := from.CanBecome(to), table[from][i] == letters[i]; got != want {
				t.Errorf("%s to %s: %v, want %v", from, to, got, want)
			}
		}
	}
}

func TestEnds(t *testing.T) {
	for i, s := range States() {
		if s.Ended() != (i >= 5) {
			t.Errorf("%s ended: %v", s, s.Ended())
		}
	}
	if State("").Ended() || State("nonsense").Ended() || Running.CanBecome("nonsense") {
		t.Error("an unknown state is an end, or can be reached")
	}
}
