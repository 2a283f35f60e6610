package cli

import (
	"context"
	"errors"
	"time"

	ucli "github.com/urfave/cli/v2"

	"qj/jobspec"
	"qj/runs"
)

func (a *app) waitCommand() *ucli.Command {
	return &ucli.Command{
		Name: "wait", Usage: "wait until runs end; exit code 3 if one did not complete", ArgsUsage: "ID...",
		Description: `  qj wait e2fc7 && qj submit python eval.py`,
		Action: func(c *ucli.Context) error {
			if c.NArg() == 0 {
				return usagef("wait needs a run id")
			}
			return a.wait(c.Context, c.Args().Slice())
		},
	}
}

func (a *app) wait(ctx context.Context, words []string) error {
	service, err := a.runsService()
	if err != nil {
		return err
	}
	var recs []runs.Record
	for _, word := range words {
		rec, err := service.Find(ctx, word)
		if err != nil {
			return err
		}
		recs = append(recs, rec)
	}
	var result error
	for i, rec := range recs {
		w := &watcher{app: a, rec: rec}
		if err := w.toEnd(ctx); err != nil {
			return err
		}
		recs[i] = w.rec
		if !a.json() {
			a.say("%s", verdictText(w.rec))
		}
		if w.rec.State() != jobspec.Completed {
			result = exitCode(exitRunFailed)
		}
	}
	if a.json() {
		rows := make([]runs.Row, len(recs))
		for i, rec := range recs {
			rows[i].Record = rec
		}
		return errors.Join(a.printJSON(a.runsJSON(rows)), result)
	}
	return result
}

// toEnd refreshes the run until it has ended.
func (w *watcher) toEnd(ctx context.Context) error {
	tick := time.NewTicker(w.pollEvery(w.rec))
	defer tick.Stop()
	for {
		if _, ended := w.ended(ctx, rankStream(0)); ended {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
