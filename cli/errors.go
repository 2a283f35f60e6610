package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"qj/runs"
)

// Exit codes, as docs/design.md lists them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitRunFailed   = 3
	exitInterrupted = 130
	exitSSH         = 255
)

// usageError is a command line that cannot be understood.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// unsupportedError is an errors.ErrUnsupported that says what exactly, and no more.
type unsupportedError struct{ text string }

func (e *unsupportedError) Error() string { return e.text }

func (e *unsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

func unsupportedf(format string, args ...any) error {
	return &unsupportedError{fmt.Sprintf(format, args...)}
}

// exitCode ends qj with a code, and says nothing: all has been said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// hinted is an error with a next step.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

func withHint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// report prints an error and returns the exit code. It is the only place that prints one.
func report(w io.Writer, err error) int {
	var code exitCode
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	fmt.Fprintf(w, "qj: %s\n", oneLine(err.Error()))
	if hint := hintFor(err); hint != "" {
		fmt.Fprintf(w, "qj: hint: %s\n", hint)
	}
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}

// oneLine joins what errors.Join puts on lines of their own.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }), "; ")
}

func hintFor(err error) string {
	var with *hinted
	var ambiguous *runs.AmbiguousError
	var missing *runs.NotFoundError
	switch {
	case errors.As(err, &with):
		return with.hint
	case errors.As(err, &ambiguous):
		return "give more of the id"
	case errors.As(err, &missing):
		return "`qj q` lists your runs"
	}
	return ""
}
