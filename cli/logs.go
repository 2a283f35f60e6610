package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	ucli "github.com/urfave/cli/v2"

	"qj/jobspec"
	"qj/logsync"
	"qj/runs"
)

func (a *app) logsCommand() *ucli.Command {
	return &ucli.Command{
		Name: "logs", Usage: "print or follow the output of one rank", ArgsUsage: "ID",
		Description: `  qj logs e2fc7                     all of rank 0
  qj logs -f --rank 3 e2fc7         follow rank 3 to the end of the run; exit code 3 if it does not complete
  qj logs --stream launcher-0 e2fc7 what the launcher of node 0 says`,
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the run ends"},
			&ucli.IntFlag{Name: "rank", Usage: "`NUMBER` of the rank"},
			&ucli.IntFlag{Name: "tail", Value: -1, Usage: "the last `LINES` only", DefaultText: "all"},
			&ucli.StringFlag{Name: "stream", Usage: "`NAME` of another stream, like launcher-0"},
		},
		Action: a.logs,
	}
}

func (a *app) logs(c *ucli.Context) error {
	if c.NArg() != 1 {
		return usagef("logs takes one run id")
	}
	if a.json() {
		return usagef("logs are text: qj q -o json %s names the files", c.Args().First())
	}
	service, err := a.runsService()
	if err != nil {
		return err
	}
	rec, err := service.Find(c.Context, c.Args().First())
	if err != nil {
		return err
	}
	stream, err := chosenStream(c, rec)
	if err != nil {
		return err
	}
	if c.Bool("follow") {
		ended, err := a.follow(c.Context, rec, stream, c.Int("tail"))
		if err == nil && ended.State() != jobspec.Completed {
			a.say("%s", verdictText(ended))
			err = exitCode(exitRunFailed)
		}
		return err
	}
	return a.printLog(c.Context, rec, stream, c.Int("tail"))
}

func chosenStream(c *ucli.Context, rec runs.Record) (logsync.Stream, error) {
	if name := c.String("stream"); name != "" {
		stream, err := logsync.ParseStream("0/" + name)
		if err != nil {
			return stream, usagef("--stream %q: want a name like launcher-0", name)
		}
		return stream, nil
	}
	rank, size := c.Int("rank"), rec.Job.Layout.WorldSize()
	if rank < 0 || rank >= size {
		return logsync.Stream{}, usagef("--rank %d: run %s has ranks 0 to %d", rank, rec.ID.Suffix(), size-1)
	}
	return rankStream(rank), nil
}

// printLog pulls and prints what there is of a stream.
func (a *app) printLog(ctx context.Context, rec runs.Record, stream logsync.Stream, tail int) error {
	if err := a.pull(ctx, rec); err != nil {
		return err
	}
	dir, err := a.logFolder(rec.ID)
	if err != nil {
		return err
	}
	path := stream.LocalPath(dir)
	if tail >= 0 {
		return a.showTail(path, tail)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has written nothing yet
	}
	if err != nil {
		return fmt.Errorf("print log: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(a.Stdout, f); err != nil {
		return fmt.Errorf("print log: %w", err)
	}
	return nil
}

// follow prints a stream as it grows, from its last lines on (negative: from its start), until the run
// has ended, and returns the ended run. Interrupting it does the run no harm.
func (a *app) follow(ctx context.Context, rec runs.Record, stream logsync.Stream, tail int) (runs.Record, error) {
	from, err := a.startOf(ctx, rec, stream, tail)
	if err != nil {
		return rec, err
	}
	store, err := a.store(rec.Store)
	if err != nil {
		return rec, err
	}
	out := a.Stdout
	if a.json() {
		out = io.Discard
	}
	watch := &watcher{app: a, rec: rec}
	_, err = logsync.Follow(ctx, store, jobspec.RunFolder(rec.ID), stream, from, out, logsync.FollowOptions{
		Poll:  a.pollEvery(rec),
		Ended: func() (int64, bool) { return watch.ended(ctx, stream) },
		Notify: func(err error) {
			if err != nil {
				a.warn("%v; trying again", err)
			}
		},
	})
	if ctx.Err() != nil {
		a.say("\nthe run goes on: qj logs -f %s follows it, qj abort %s ends it", rec.ID.Suffix(), rec.ID.Suffix())
		return watch.rec, ctx.Err()
	}
	if err != nil {
		return watch.rec, fmt.Errorf("follow run %s: %w", rec.ID, err)
	}
	return watch.rec, nil
}

// startOf prints the last lines that are there already and returns the offset behind them.
func (a *app) startOf(ctx context.Context, rec runs.Record, stream logsync.Stream, tail int) (int64, error) {
	if tail < 0 {
		return 0, nil
	}
	if err := a.pull(ctx, rec); err != nil {
		return 0, err
	}
	dir, err := a.logFolder(rec.ID)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(stream.LocalPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("follow run %s: %w", rec.ID, err)
	}
	if a.json() {
		return info.Size(), nil
	}
	text, err := logsync.TailLines(stream.LocalPath(dir), tail)
	if err != nil {
		return 0, err
	}
	_, err = a.Stdout.Write(text)
	return info.Size(), err
}

func (a *app) pollEvery(rec runs.Record) time.Duration {
	service, err := a.runsService()
	if err != nil {
		return 0
	}
	return service.PollEvery(rec)
}

// watcher refreshes a run while somebody follows it, and tells when its state changes.
type watcher struct {
	*app
	rec    runs.Record
	told   string
	failed bool
}

// ended is asked by the follower before each look at the store.
func (w *watcher) ended(ctx context.Context, stream logsync.Stream) (int64, bool) {
	service, err := w.runsService()
	if err != nil {
		return 0, false
	}
	fresh, err := service.Refresh(ctx, []runs.Record{w.rec})
	if err != nil && ctx.Err() == nil && !w.failed {
		w.warn("%v; trying again", err)
	}
	w.failed = err != nil
	w.rec = fresh[0]
	w.tell()
	if !w.rec.State().Ended() {
		return 0, false
	}
	size, known := w.rec.Revision.Status.Streams[stream.String()]
	if !known || !w.rec.Revision.Status.LogsComplete {
		return -1, true
	}
	return size, true
}

// tell says, on stderr, what a follower waits for while there is no output.
func (w *watcher) tell() {
	state := w.rec.State()
	text := string(state)
	if reason := w.rec.Revision.Status.Reason.Text; reason != "" {
		text += ": " + oneLine(reason)
	}
	if text != w.told && (state == jobspec.Queued || state == jobspec.Preparing || state == jobspec.Finishing && w.rec.Revision.Status.Reason.Code == jobspec.ReasonHeld) {
		w.say("%s %s", w.rec.ID.Suffix(), text)
	}
	w.told = text
}
