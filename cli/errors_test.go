package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"qj/jobspec"
	"qj/runs"
)

func TestReport(t *testing.T) {
	tests := []struct {
		err  error
		code int
		want string
	}{
		{nil, 0, ""},
		{errors.New("put x: denied"), 1, "qj: put x: denied\n"},
		{usagef("what %q", "x"), 2, "qj: what \"x\"\n"},
		{fmt.Errorf("read words: %w", usagef("what")), 2, "qj: read words: what\n"},
		{withHint(usagef("what"), "type %s", "q"), 2, "qj: what\nqj: hint: type q\n"},
		{fmt.Errorf("find: %w", withHint(errors.New("nothing"), "look")), 1, "qj: find: nothing\nqj: hint: look\n"},
		{errors.Join(errors.New("one"), errors.New("two")), 1, "qj: one; two\n"},
		{&runs.NotFoundError{Suffix: "x"}, 1, "qj: no run ends in \"x\"\nqj: hint: `qj q` lists your runs\n"},
		{&runs.AmbiguousError{Suffix: "x", Candidates: []jobspec.RunID{"ax", "bx"}}, 1, "qj: \"x\" fits 2 runs: ax, bx\nqj: hint: give more of the id\n"},
		{exitCode(exitRunFailed), 3, ""},
		{errors.Join(nil, exitCode(exitRunFailed)), 3, ""},
		{fmt.Errorf("wait: %w", context.Canceled), 130, ""},
	}
	for _, test := range tests {
		var out bytes.Buffer
		if code := report(&out, test.err); code != test.code || out.String() != test.want {
			t.Errorf("report(%v) = %d, %q, want %d, %q", test.err, code, out.String(), test.code, test.want)
		}
	}
}

func TestUnsupportedSaysOnlyWhat(t *testing.T) {
	err := fmt.Errorf("open cluster far: %w", unsupportedf("backend %s is not supported yet", "k8s"))
	if !errors.Is(err, errors.ErrUnsupported) || err.Error() != "open cluster far: backend k8s is not supported yet" {
		t.Errorf("%v, ErrUnsupported: %v", err, errors.Is(err, errors.ErrUnsupported))
	}
}
