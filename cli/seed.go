package cli

import (
	"strings"
	"time"
)

// The words of the tools that qj replaces, for people whose fingers know them: each is understood, or
// answered with the new word.

// seedVerb returns the verb that an old one stands for, "" if it is none, or an error that names what to
// type instead.
func seedVerb(word string) (string, error) {
	switch word {
	case "query":
		return "q", nil
	case "f", "failed":
		return "qf", nil
	case "initi":
		return "init", nil // every init sends only what changed
	}
	if instead, old := seedAnswers[word]; old {
		return "", usagef("%s: %s", word, instead)
	}
	return "", nil
}

var seedAnswers = map[string]string{
	"local":         "now: qj -c local submit COMMAND",
	"initc":         "qj does not compile yet: run the compile script as part of the command, qj submit --shell './compile.aml.sh && …'",
	"initic":        "qj does not compile yet: run the compile script as part of the command, qj submit --shell './compile.aml.sh && …'",
	"i":             "nothing to inject: qj records every run by itself, qj q -o json prints them",
	"inject":        "nothing to inject: qj records every run by itself, qj q -o json prints them",
	"monitor":       "qj has no monitor yet; qj wait ID waits for a run, qj resubmit ID repeats it",
	"parse":         "qj q ID says why a run failed",
	"sync":          "nothing to upload: the launcher travels inside qj",
	"update_config": "nothing to upload: the launcher travels inside qj",
	"gc":            "qj has no gc yet",
	"s":             "qj has no summary of a cluster yet",
	"summary":       "qj has no summary of a cluster yet",
	"blame":         "qj has no summary of a cluster yet",
	"ls":            "qj has no data verbs yet",
	"u":             "qj has no data verbs yet",
	"upload":        "qj has no data verbs yet",
	"d":             "qj has no data verbs yet",
	"download":      "qj has no data verbs yet",
	"rm":            "qj has no data verbs yet",
	"url":           "qj has no data verbs yet",
	"do":            "qj has no data verbs yet",
	"cc":            "qj has no concurrent submit; qj -c OTHER resubmit ID moves a run",
	"dup":           "now: qj resubmit ID, with -n for another size",
}

// seedFlag returns the flags that an old one stands for (possibly none, but not nil), and how many of the
// following words it used; nil if it is no old flag.
func seedFlag(word string, rest []string) (instead []string, used int, err error) {
	next := ""
	if len(rest) > 0 {
		next = rest[0]
	}
	switch strings.TrimLeft(word, "-") {
	case "hold":
		if _, err := time.ParseDuration(next); err == nil || !strings.HasPrefix(word, "-hold") {
			return nil, 0, nil // ours
		}
		return []string{"--hold=" + seedHold}, 0, nil
	case "rt", "resubmit_to":
		if next == "" {
			return nil, 0, usagef("%s needs a cluster", word)
		}
		return []string{"--cluster=" + next}, 1, nil
	case "no-s":
		return []string{"--dry-run"}, 0, nil
	case "no-wl":
		return []string{"--no-logs"}, 0, nil
	case "no-lf", "no-dt", "no-m", "no-wg", "wl":
		return []string{}, 0, nil // they made q quicker; it is quick
	case "ca", "compile_args":
		return nil, 0, usagef("%s: qj does not compile yet: run the compile script as part of the command, qj submit --shell './compile.aml.sh %s && …'", word, next)
	case "ic":
		return nil, 0, usagef("%s: qj has no collections: it records every run by itself", word)
	case "from_cluster":
		return nil, 0, usagef("%s: qj has no data verbs yet", word)
	}
	return nil, 0, nil
}

// seedHold bounds the old -hold, which held a node for ever.
const seedHold = "4h"
