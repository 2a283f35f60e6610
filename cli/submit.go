package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"qj/backends"
	"qj/configs"
	"qj/jobspec"
	"qj/runs"
	"qj/snapshot"
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
		&ucli.IntFlag{Name: "nodes", Usage: "`NUMBER` of machines (default: as few as the GPUs need)"},
		&ucli.IntFlag{Name: "procs-per-node", Usage: "`NUMBER` of processes on each (default: one per GPU)"},
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
	if request.Job.Code, err = a.codeFor(c.Context, section, c.Bool("init")); err != nil {
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

// jobOf is the job that the command line and the cluster's section ask for, without its code.
func (a *app) jobOf(c *ucli.Context, section *configs.Cluster, command []string) (jobspec.Job, error) {
	config, err := a.settings()
	if err != nil {
		return jobspec.Job{}, err
	}
	job := jobspec.Job{Name: c.String("name"), Command: command, Env: maps.Clone(section.Env)}
	if job.Layout, err = a.layout(c, section, section.NumGPU); err != nil {
		return jobspec.Job{}, err
	}
	if job.Subdir, err = relative(config.Project, a.Dir); err != nil {
		return jobspec.Job{}, err
	}
	if job.Tags, err = pairs("--tag", c.StringSlice("tag"), nil); err != nil {
		return jobspec.Job{}, err
	}
	if job.Env, err = pairs("--env", c.StringSlice("env"), job.Env); err != nil {
		return jobspec.Job{}, err
	}
	a.warnOfSecrets(c.StringSlice("env"))
	if c.IsSet("hold") {
		if err := job.Hold.UnmarshalText([]byte(c.String("hold"))); err != nil || job.Hold < 0 {
			return jobspec.Job{}, usagef("--hold: %q is not a duration (like 90s, 10m or 4h)", c.String("hold"))
		}
	}
	job.Secrets = slices.Compact(slices.Sorted(slices.Values(append(section.Secrets, c.StringSlice("secret")...))))
	job.Mounts, err = mounts(section)
	return job, err
}

// layout says how many processes run where. usual is how many GPUs the job has without -n.
func (a *app) layout(c *ucli.Context, section *configs.Cluster, usual int) (jobspec.Layout, error) {
	ask := jobspec.Ask{NumGPU: usual, Nodes: c.Int("nodes"), ProcsPerNode: c.Int("procs-per-node"), OneProcess: !section.MultiProcess}
	if a.global.hasN {
		ask.NumGPU = a.global.numGPU
	}
	perNode := -1
	if section.GPUPerNode != nil {
		perNode = *section.GPUPerNode
	}
	layout, err := jobspec.Expand(ask, perNode)
	if err != nil {
		return layout, usagef("cluster %s: %v", section.Name, err)
	}
	return layout, nil
}

// pairs reads K=V words over what is there already.
func pairs(flag string, words []string, over map[string]string) (map[string]string, error) {
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, usagef("%s %q: want K=V", flag, word)
		}
		if over == nil {
			over = map[string]string{}
		}
		over[name] = value
	}
	return over, nil
}

var secretName = regexp.MustCompile(`(?i)(secret|token|passw|api_?key|credential|private_?key|access_?key)`)

// warnOfSecrets speaks up when --env looks like carrying a secret: it is part of the record.
func (a *app) warnOfSecrets(words []string) {
	for _, word := range words {
		if name, _, _ := strings.Cut(word, "="); secretName.MatchString(name) {
			a.warn("--env %s is kept in the run's record; --secret %s is not", name, name)
		}
	}
}

// mounts are the folders of this machine that the cluster maps into the code.
func mounts(section *configs.Cluster) ([]jobspec.Mount, error) {
	var list []jobspec.Mount
	for _, folder := range section.Folders {
		if folder.Store != "" {
			return nil, fmt.Errorf("cluster %s: %s_folder lies in store %s, and only folders of the machine can be mapped yet",
				section.Name, folder.Name, folder.Store)
		}
		list = append(list, jobspec.Mount{Name: folder.Name, Path: folder.Path})
	}
	return list, nil
}

// secretsOf takes the values of secrets from the environment.
func (a *app) secretsOf(names []string) (map[string]jobspec.Secret, error) {
	values := map[string]jobspec.Secret{}
	for _, name := range names {
		value := a.Getenv(name)
		if value == "" {
			return nil, withHint(fmt.Errorf("secret %s is not set in the environment", name), "export %s, then submit again", name)
		}
		values[name] = jobspec.Secret(value)
	}
	return values, nil
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

// codeFor is the snapshot to run: that of the last init, or of one that is made now.
func (a *app) codeFor(ctx context.Context, section *configs.Cluster, fresh bool) (jobspec.Code, error) {
	config, err := a.settings()
	if err != nil {
		return jobspec.Code{}, err
	}
	last, err := a.readPin(config.Project)
	if err != nil {
		return jobspec.Code{}, err
	}
	if last == nil || fresh {
		if last, err = a.snapshot(ctx, section); err != nil {
			return jobspec.Code{}, err
		}
		return last.Code, nil
	}
	if err := a.tellChanges(ctx, config, section, last); err != nil {
		return jobspec.Code{}, err
	}
	return a.bringCode(ctx, last.Code, last.Store, section.Store)
}

// tellChanges says what changed since the snapshot that is about to run.
func (a *app) tellChanges(ctx context.Context, config *configs.Config, section *configs.Cluster, last *pin) error {
	tree, err := a.scan(config, section)
	if err != nil {
		return err
	}
	changes, err := snapshot.Changes(ctx, tree, last.Files)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return nil
	}
	const show = 3
	var names []string
	for _, change := range changes[:min(show, len(changes))] {
		names = append(names, change.Path)
	}
	more := ""
	if len(changes) > show {
		more = ", …"
	}
	files := "1 file"
	if len(changes) > 1 {
		files = fmt.Sprintf("%d files", len(changes))
	}
	a.warn("%s changed since init and will not be in the run: %s%s (qj submit --init takes them)", files, strings.Join(names, ", "), more)
	return nil
}

// bringCode makes sure that a snapshot is in the store that it is about to run from, and returns what to
// pin there: of one snapshot, the first manifest in a store wins.
func (a *app) bringCode(ctx context.Context, code jobspec.Code, from, to string) (jobspec.Code, error) {
	if from == to {
		return code, nil
	}
	source, err := a.store(from)
	if err != nil {
		return code, err
	}
	target, err := a.store(to)
	if err != nil {
		return code, err
	}
	temp, err := a.tempDir()
	if err != nil {
		return code, err
	}
	s, err := snapshot.Copy(ctx, source, target, code.Snapshot, code.Manifest, temp)
	if err != nil {
		return code, fmt.Errorf("copy code to store %s: %w", to, err)
	}
	return jobspec.Code{Snapshot: s.ID, Manifest: s.Manifest}, nil
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
			fmt.Fprintln(a.Stdout, rec.ID)
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
