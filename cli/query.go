package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"qj/jobspec"
	"qj/logsync"
	"qj/runs"
)

const (
	tailLines = 100 // of rank 0 that q shows
	tableRows = 50  // that q shows without --max
)

func queryFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.IntFlag{Name: "max", Value: tableRows, Usage: "`ROWS` of a table, 0 for all"},
		&ucli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "follow rank 0 to the end of the run"},
		&ucli.BoolFlag{Name: "no-logs", Usage: "do not pull logs"},
		&ucli.IntFlag{Name: "tail", Value: tailLines, Usage: "`LINES` of rank 0 to show"},
	}
}

func (a *app) queryCommand() *ucli.Command {
	return &ucli.Command{
		Name: "q", Aliases: []string{"query"},
		Usage:     "table of my runs; or, of the runs named: pull logs, last lines, paths, what is going on",
		ArgsUsage: "[ID...]",
		Description: `  qj q               my newest runs
  qj q e2fc7         one run; its logs go to ./assets/<run id>/ (AML_LOG_FOLDER or assets: in qj.yaml move it)
  qj q -f @last      follow my newest run; exit code 3 if it does not complete
  qj q -o json       for programs: docs/json.md`,
		Flags: queryFlags(),
		Action: func(c *ucli.Context) error {
			if c.NArg() == 0 {
				return a.table(c.Context, c.Int("max"), nil)
			}
			return a.queryRuns(c)
		},
	}
}

// queryStateCommand is a table of the runs in one state.
func (a *app) queryStateCommand(verb string, word string) *ucli.Command {
	states := map[string][]jobspec.State{
		"queued":  {jobspec.Submitting, jobspec.Queued},
		"running": {jobspec.Preparing, jobspec.Running, jobspec.Finishing},
		"failed":  {jobspec.Failed, jobspec.Lost, jobspec.Preempted},
	}[word]
	return &ucli.Command{
		Name: verb, Usage: "table of my " + word + " runs",
		Flags: queryFlags()[:1],
		Action: func(c *ucli.Context) error {
			if c.NArg() > 0 {
				return usagef("%s takes no ids: qj q %s shows a run", verb, c.Args().First())
			}
			return a.table(c.Context, c.Int("max"), func(r runs.Record) bool { return slices.Contains(states, r.State()) })
		},
	}
}

func (a *app) table(ctx context.Context, limit int, keep func(runs.Record) bool) error {
	if limit < 0 {
		return usagef("--max %d is negative", limit)
	}
	service, err := a.runsService()
	if err != nil {
		return err
	}
	if keep, err = a.ofCluster(keep); err != nil {
		return err
	}
	rows, total, err := service.List(ctx, limit, keep)
	if a.json() {
		return errors.Join(a.printJSON(a.runsJSON(rows)), err)
	}
	if len(rows) == 0 {
		if err == nil {
			a.say("no runs")
		}
		return err
	}
	if printed := a.printTable(rows); printed != nil {
		return printed
	}
	if total > len(rows) && keep == nil {
		a.say("%d older runs are not shown: --max %d shows all", total-len(rows), total)
	}
	return err
}

// ofCluster narrows a table to the cluster that -c names, if it does.
func (a *app) ofCluster(keep func(runs.Record) bool) (func(runs.Record) bool, error) {
	if a.global.cluster == "" {
		return keep, nil
	}
	section, err := a.section()
	if err != nil {
		return nil, err
	}
	return func(r runs.Record) bool { return r.Cluster == section.Name && (keep == nil || keep(r)) }, nil
}

// queryRuns shows runs one after the other.
func (a *app) queryRuns(c *ucli.Context) error {
	if c.Int("tail") < 0 {
		return usagef("--tail %d is negative", c.Int("tail"))
	}
	service, err := a.runsService()
	if err != nil {
		return err
	}
	var rows []runs.Row
	for _, word := range c.Args().Slice() {
		rec, err := service.Find(c.Context, word)
		if err != nil {
			return err
		}
		rows = append(rows, runs.Row{Record: rec})
	}
	if c.Bool("follow") {
		return a.followToEnd(c, rows)
	}
	for i, row := range rows {
		rows[i] = a.refreshed(c.Context, row)
		if !c.Bool("no-logs") {
			if err := a.pull(c.Context, rows[i].Record); err != nil {
				a.warn("%v", err) // what is known of the run is worth showing all the same
			}
		}
		if a.json() {
			continue
		}
		if err := a.showRun(rows[i], c.Int("tail")); err != nil {
			return err
		}
	}
	if a.json() {
		return a.printJSON(a.runsJSON(rows))
	}
	return nil
}

// refreshed is the row as its cluster sees it now, or marked with its age if the cluster does not answer.
func (a *app) refreshed(ctx context.Context, row runs.Row) runs.Row {
	service, err := a.runsService()
	if err != nil {
		return row
	}
	const patience = 20 * time.Second
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fresh, err := service.Refresh(limited, []runs.Record{row.Record})
	if err != nil {
		a.warn("%v", err)
		row.Stale = a.Now().Sub(service.LastSeen(row.Record))
	}
	row.Record = fresh[0]
	return row
}

// followToEnd shows rank 0 of each run until it ends, then the run.
func (a *app) followToEnd(c *ucli.Context, rows []runs.Row) error {
	ctx := c.Context
	var result error
	for i, row := range rows {
		ended, err := a.follow(ctx, row.Record, rankStream(0), c.Int("tail"))
		if err != nil {
			return err
		}
		rows[i].Record = ended
		if !c.Bool("no-logs") {
			if err := a.pull(ctx, ended); err != nil {
				a.warn("%v", err)
			}
		}
		if !a.json() {
			if err := a.showRun(rows[i], 0); err != nil {
				return err
			}
		}
		if ended.State() != jobspec.Completed {
			result = exitCode(exitRunFailed)
		}
	}
	if a.json() {
		return errors.Join(a.printJSON(a.runsJSON(rows)), result)
	}
	return result
}

// logFolder is where the logs of a run are kept here.
func (a *app) logFolder(id jobspec.RunID) (string, error) {
	config, err := a.settings()
	if err != nil {
		return "", err
	}
	return filepath.Join(config.Assets, string(id)), nil
}

// pull fetches what is new of a run's logs.
func (a *app) pull(ctx context.Context, rec runs.Record) error {
	dir, err := a.logFolder(rec.ID)
	if err != nil {
		return err
	}
	if pulled(dir, rec) {
		return nil
	}
	store, err := a.store(rec.Store)
	if err != nil {
		return err
	}
	if _, err := logsync.Pull(ctx, store, jobspec.RunFolder(rec.ID), dir, nil); err != nil {
		return fmt.Errorf("pull logs of run %s: %w", rec.ID, err)
	}
	return nil
}

// pulled says whether every stream of an ended run is here in full: then nobody has to be asked.
func pulled(dir string, rec runs.Record) bool {
	if !rec.State().Ended() || !rec.Revision.Status.LogsComplete {
		return false
	}
	for name, size := range rec.Revision.Status.Streams {
		stream, err := logsync.ParseStream(name)
		if err != nil {
			return false
		}
		if size == 0 {
			continue
		}
		info, err := os.Stat(stream.LocalPath(dir))
		if err != nil || info.Size() != size {
			return false
		}
	}
	return true
}

func rankStream(rank int) logsync.Stream { return logsync.Stream{Name: fmt.Sprintf("rank-%d", rank)} }
