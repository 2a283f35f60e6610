package cli

import (
	ucli "github.com/urfave/cli/v2"

	"qj/configs"
	"qj/runs"
)

func (a *app) resubmitCommand() *ucli.Command {
	return &ucli.Command{
		Name: "resubmit", Usage: "run the same command, on the same code, again; prints the new ids", ArgsUsage: "ID...",
		Description: `Takes command, size, environment and snapshot from the run, reads its secrets anew, and aborts the old
run once the new one is accepted. -n, --nodes, --procs-per-node and --init override; -c moves it.

  qj resubmit e2fc7
  qj resubmit -n 16 -c gpu e2fc7`,
		Flags: append(sizeFlags(), &ucli.BoolFlag{Name: "init", Usage: "snapshot the code anew instead of taking the run's"}),
		Action: func(c *ucli.Context) error {
			if c.NArg() == 0 {
				return usagef("resubmit needs a run id")
			}
			return a.resubmitAll(c)
		},
	}
}

func (a *app) resubmitAll(c *ucli.Context) error {
	service, err := a.runsService()
	if err != nil {
		return err
	}
	var recs []runs.Record
	for _, word := range c.Args().Slice() { // all are looked up before the first is repeated
		rec, err := service.FindToAct(c.Context, word)
		if err != nil {
			return err
		}
		recs = append(recs, rec)
	}
	for _, rec := range recs {
		if err := a.resubmit(c, rec); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) resubmit(c *ucli.Context, old runs.Record) error {
	section, err := a.sectionFor(old)
	if err != nil {
		return err
	}
	job := old.Job
	if section.Name != old.Cluster || a.global.hasN || c.IsSet("nodes") || c.IsSet("procs-per-node") {
		if job.Layout, err = a.layout(c, section, old.Job.Layout.NumGPU); err != nil {
			return err
		}
	}
	if section.Name != old.Cluster {
		if job.Mounts, err = mounts(section); err != nil {
			return err
		}
	}
	secrets, err := a.secretsOf(job.Secrets)
	if err != nil {
		return err
	}
	if c.Bool("init") {
		job.Code, err = a.codeFor(c.Context, section, job.Subdir, true)
	} else {
		job.Code, err = a.bringCode(c.Context, job.Code, old.Store, section.Store)
	}
	if err != nil {
		return err
	}
	request, err := a.request(section, job, secrets)
	if err != nil {
		return err
	}
	request.Replaces = &old
	return a.send(c.Context, request)
}

// sectionFor is the cluster to run on again: the chosen one if somebody chose, else the run's own.
func (a *app) sectionFor(old runs.Record) (*configs.Cluster, error) {
	config, err := a.settings()
	if err != nil {
		return nil, err
	}
	name := old.Cluster
	if a.global.cluster != "" {
		name = a.global.cluster
	}
	return config.Cluster(name)
}
