package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"qj/backends"
	"qj/configs"
	"qj/jobspec"
	"qj/runs"
)

func (a *app) submitCommand() *ucli.Command {
	return &ucli.Command{
		Name:      "submit",
		Usage:     "run a command; prints the id of the run",
		ArgsUsage: "COMMAND...",
		Description: `Runs the command as one process per GPU, over the code of the last init in this folder (with none,
does the init itself). From the first plain word on, everything is the command, word by word: quotes,
blanks, $ and * arrive unchanged.

  qj -n 8 submit python train.py --lr 0.1
  qj -n 16 -c gpu submit --name ablation --tag lr=0.1 python train.py
  qj submit --shell 'python prepare.py && python train.py'
  qj submit --init -n 4 python train.py     snapshot first
  qj -n 8 submit --dry-run python train.py  show the plan, submit nothing`,
		Flags: append(sizeFlags(),
			&ucli.BoolFlag{Name: "init", Usage: "snapshot the code first"},
			&ucli.StringFlag{Name: "shell", Usage: "run one `STRING` by sh -c, instead of a command"},
			&ucli.StringFlag{Name: "name", Usage: "`NAME` of the run, for people"},
			&ucli.StringSliceFlag{Name: "tag", Usage: "`K=V` to remember with the run"},
			&ucli.StringSliceFlag{Name: "env", Usage: "`K=V` in the environment of every process"},
			&ucli.StringSliceFlag{Name: "secret", Usage: "`NAME` of an environment variable here that processes get, kept in no record"},
			&ucli.StringFlag{Name: "hold", Usage: "`DURATION` to keep a failed run's node for qj ssh"},
			&ucli.BoolFlag{Name: "dry-run", Usage: "print the plan, submit nothing"},
		),
		Action: a.submit,
	}
}

func sizeFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.IntFlag{Name: "nodes", Usage: "`NUMBER` of machines", DefaultText: "as few as the GPUs need"},
		&ucli.IntFlag{Name: "procs-per-node", Usage: "`NUMBER` of processes on each", DefaultText: "one per GPU"},
	}
}

func (a *app) submit(c *ucli.Context) error {
	command, err := commandOf(c)
	if err != nil {
		return err
	}
	section, err := a.section()
	if err != nil {
		return err
	}
	if _, err := a.openCluster(section.Name); err != nil {
		return err // before anything of its section is judged
	}
	job, err := a.jobOf(c, section, command)
	if err != nil {
		return err
	}
	secrets, err := a.secretsOf(job.Secrets)
	if err != nil {
		return err
	}
	request, err := a.request(section, job, secrets)
	if err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return a.dryRun(c.Context, request)
	}
	if request.Job.Code, err = a.codeFor(c.Context, section, request.Job.Subdir, c.Bool("init")); err != nil {
		return err
	}
	return a.send(c.Context, request)
}

// commandOf is the command as a list of words.
func commandOf(c *ucli.Context) ([]string, error) {
	words := c.Args().Slice()
	if c.IsSet("shell") {
		if len(words) > 0 {
			return nil, usagef("--shell takes the whole command in one string, got also %q", words[0])
		}
		if strings.TrimSpace(c.String("shell")) == "" {
			return nil, usagef("the command of --shell is empty")
		}
		return []string{"sh", "-c", c.String("shell")}, nil
	}
	if len(words) == 0 || words[0] == "" {
		return nil, withHint(usagef("submit needs a command"), "qj -n 8 submit python train.py")
	}
	return words, nil
}

// request puts together all that a submission needs but its code.
func (a *app) request(section *configs.Cluster, job jobspec.Job, secrets map[string]jobspec.Secret) (runs.Request, error) {
	config, err := a.settings()
	if err != nil {
		return runs.Request{}, err
	}
	cluster, err := a.openCluster(section.Name)
	if err != nil {
		return runs.Request{}, err
	}
	store, err := config.Store(section.Store)
	if err != nil {
		return runs.Request{}, err
	}
	return runs.Request{
		Cluster: cluster, Job: job, Secrets: secrets, Host: a.Host, Version: version(),
		Launch: jobspec.Launch{Store: storeRef(store), Grace: section.Grace, JoinTimeout: section.JoinTimeout},
	}, nil
}

// send submits and prints the id.
func (a *app) send(ctx context.Context, request runs.Request) error {
	service, err := a.runsService()
	if err != nil {
		return err
	}
	rec, err := service.Submit(ctx, request)
	if rec.Revision.Number > 0 && rec.Revision.Handle != "" { // it runs, whatever went wrong afterwards
		if a.json() {
			err = errors.Join(a.printJSON(a.runJSON(runs.Row{Record: rec})), err)
		} else {
			_, printed := fmt.Fprintln(a.Stdout, rec.ID)
			if printed != nil {
				printed = fmt.Errorf("print the id of run %s, which was submitted: %w", rec.ID, printed)
			}
			err = errors.Join(err, printed)
		}
	} else if ctx.Err() != nil && rec.ID != "" {
		a.warn("interrupted: qj q %s tells whether the cluster took the run", rec.ID.Suffix())
	}
	return err
}

func (a *app) dryRun(ctx context.Context, request runs.Request) error {
	service, err := a.runsService()
	if err != nil {
		return err
	}
	config, err := a.settings()
	if err != nil {
		return err
	}
	if last, err := a.readPin(config.Project); err != nil {
		return err
	} else if last != nil {
		request.Job.Code = last.Code
	}
	plan, err := service.Plan(ctx, request)
	if err != nil {
		return err
	}
	return a.printPlan(plan)
}

func (a *app) printPlan(plan backends.Plan) error {
	for _, d := range plan.Documents {
		if _, err := fmt.Fprintf(a.Stdout, "# %s\n%s\n", d.Name, strings.TrimRight(string(d.Body), "\n")); err != nil {
			return err
		}
	}
	return nil
}
