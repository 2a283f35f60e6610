package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	ucli "github.com/urfave/cli/v2"

	"qj/jobspec"
	"qj/runs"
)

func (a *app) abortCommand() *ucli.Command {
	return &ucli.Command{
		Name: "abort", Aliases: []string{"a"}, Usage: "stop runs, with all that they started", ArgsUsage: "ID...",
		Description: `Processes get SIGTERM, and SIGKILL after the grace period of the cluster (10 s).

  qj abort e2fc7 60ce2`,
		Action: func(c *ucli.Context) error {
			if c.NArg() == 0 {
				return usagef("abort needs a run id")
			}
			return a.abort(c.Context, c.Args().Slice())
		},
	}
}

// stopPatience is how long abort waits to see a run end, beyond what most grace periods are.
const stopPatience = 20 * time.Second

// submitPatience is how long it waits for a run that no cluster has yet. Its submitter cancels what it
// makes; if that died, nothing runs, and there is nothing to wait for.
const submitPatience = time.Second

func (a *app) abort(ctx context.Context, words []string) error {
	service, err := a.runsService()
	if err != nil {
		return err
	}
	var recs []runs.Record
	for _, word := range words { // all are looked up before the first is stopped
		rec, err := service.FindToAct(ctx, word)
		if err != nil {
			return err
		}
		recs = append(recs, rec)
	}
	var failed []error
	for i, rec := range recs { // one that cannot be asked keeps nobody else running
		fresh, err := service.Refresh(ctx, []runs.Record{rec})
		if err != nil {
			a.warn("%v", err)
		}
		recs[i], err = service.Abort(ctx, fresh[0])
		failed = append(failed, err)
	}
	var rows []runs.Row
	for _, rec := range recs {
		rec, err := a.awaitStop(ctx, rec)
		if err != nil && ctx.Err() != nil {
			return err
		}
		rows = append(rows, runs.Row{Record: rec})
		switch {
		case a.json():
		case rec.State() == jobspec.Submitting:
			a.say("%s has not reached its cluster; it is canceled if it ever does", rec.ID.Suffix())
		case !rec.State().Ended():
			a.say("%s is asked to stop and still %s", rec.ID.Suffix(), rec.State())
		default:
			fmt.Fprintln(a.Stdout, verdictText(rec))
		}
	}
	if a.json() {
		failed = append(failed, a.printJSON(a.runsJSON(rows)))
	}
	return errors.Join(failed...)
}

// awaitStop returns the run as it ended, or as it is when patience is over.
func (a *app) awaitStop(ctx context.Context, rec runs.Record) (runs.Record, error) {
	patience := stopPatience
	if rec.State() == jobspec.Submitting {
		patience = submitPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w := &watcher{app: a, rec: rec}
	err := w.toEnd(ctx)
	return w.rec, err
}
