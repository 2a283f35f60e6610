package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	ucli "github.com/urfave/cli/v2"

	"qj/backends"
	"qj/runs"
)

func (a *app) sshCommand() *ucli.Command {
	return &ucli.Command{
		Name: "ssh", Usage: "open a shell where a run runs, or run a command there", ArgsUsage: "ID [-- COMMAND...]",
		Description: `In the folder and environment of the first rank of the node. Returns the exit code of what ran there,
255 if it could not be run.

  qj ssh e2fc7
  qj ssh e2fc7 -- nvidia-smi
  qj ssh --node 1 e2fc7 -- ps x`,
		Flags: []ucli.Flag{&ucli.IntFlag{Name: "node", Usage: "`NUMBER` of the node"}},
		Action: func(c *ucli.Context) error {
			if c.NArg() == 0 {
				return usagef("ssh needs a run id")
			}
			code, err := a.ssh(c)
			if err != nil {
				report(a.Stderr, err)
				return exitCode(exitSSH)
			}
			if code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
}

func (a *app) ssh(c *ucli.Context) (int, error) {
	service, err := a.runsService()
	if err != nil {
		return 0, err
	}
	rec, err := service.FindToAct(c.Context, c.Args().First())
	if err != nil {
		return 0, err
	}
	node := c.Int("node")
	if node < 0 || node >= rec.Job.Layout.Nodes {
		return 0, usagef("--node %d: run %s has nodes 0 to %d", node, rec.ID.Suffix(), rec.Job.Layout.Nodes-1)
	}
	cluster, err := a.openCluster(rec.Cluster)
	if err != nil {
		return 0, err
	}
	sheller, ok := backends.As[backends.Sheller](cluster.Backend)
	if !ok {
		return 0, fmt.Errorf("cluster %s cannot open a shell in a run", rec.Cluster)
	}
	row := a.refreshed(c.Context, runs.Row{Record: rec})
	if row.State().Ended() {
		where := ""
		if folder := row.Revision.Status.Folder; folder != "" {
			where = "; its files are in " + folder
		}
		return 0, fmt.Errorf("run %s is over (%s)%s", row.ID.Suffix(), row.State(), where)
	}
	if row.Revision.Handle == "" {
		return 0, fmt.Errorf("run %s has not reached its cluster yet", row.ID.Suffix())
	}
	// Ctrl-C is for what runs there: it reaches it through the terminal, and must not end qj.
	swallowed := make(chan os.Signal, 1)
	signal.Notify(swallowed, os.Interrupt)
	defer signal.Stop(swallowed)
	return sheller.Shell(context.WithoutCancel(c.Context), row.Revision.Handle, backends.Shell{
		Node: node, Command: c.Args().Tail(), Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr,
	})
}
