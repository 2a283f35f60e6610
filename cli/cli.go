// Package cli is the command line: it parses, wires the packages together, calls and prints; nothing else
// does. One file a command.
//
// What it prints, everywhere: results on stdout, messages and progress on stderr; an error in one line
// and a hint when there is a next step; colours and progress bars on a terminal only; with -o json one
// document on stdout and nothing else.
package cli

import (
	"context"
	"io"
	"runtime/debug"
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// Main runs qj and returns its exit code.
func Main(ctx context.Context, w World) int {
	a := &app{World: w}
	return report(w.Stderr, a.run(ctx, w.Args[1:]))
}

// app is one call of qj.
type app struct {
	World
	global globals
	open   opened // what commands share once somebody needed it
}

// globals are the flags that every command takes, at any place.
type globals struct {
	numGPU  int
	hasN    bool
	cluster string
	params  []string
	config  string
	output  string
	verbose bool
}

// Verbs for programs, not in the help.
const (
	launchVerb   = "launch"     // be qj-node
	completeVerb = "__complete" // answer a shell's completion
)

func (a *app) run(ctx context.Context, args []string) error {
	cmd := a.commands()
	if len(args) > 0 {
		switch args[0] {
		case launchVerb:
			return a.launch()
		case completeVerb:
			return a.complete(ctx, cmd, args[1:])
		}
	}
	args, err := arrange(args, cmd)
	if err != nil {
		return err
	}
	return cmd.RunContext(ctx, append([]string{"qj"}, args...))
}

func (a *app) commands() *ucli.App {
	cmd := ucli.NewApp()
	cmd.Name = "qj"
	cmd.Usage = "run a command on any GPU cluster and come back to it with five characters"
	cmd.UsageText = "qj [flags] VERB [flags] [ids or command]"
	cmd.Description = description
	cmd.Version = version()
	cmd.HideVersion = true
	cmd.Writer, cmd.ErrWriter = a.Stdout, a.Stderr
	cmd.ExitErrHandler = func(*ucli.Context, error) {} // the library would exit by itself
	cmd.DisableSliceFlagSeparator = true               // a comma in YAML or in a value is just a comma
	cmd.OnUsageError = usageProblem
	cmd.Flags = a.globalFlags()
	hideDefaults(cmd.Flags)
	cmd.Before = a.readGlobals
	cmd.Commands = []*ucli.Command{
		a.initCommand(), a.submitCommand(),
		a.queryCommand(), a.queryStateCommand("qq", "queued"), a.queryStateCommand("qr", "running"), a.queryStateCommand("qf", "failed"),
		a.logsCommand(), a.waitCommand(), a.abortCommand(), a.resubmitCommand(), a.sshCommand(),
		a.configCommand(), a.completionCommand(),
		{Name: "version", Usage: "print the version", Action: func(c *ucli.Context) error {
			if c.NArg() > 0 {
				return usagef("version takes no words, got %q", c.Args().First())
			}
			_, err := io.WriteString(a.Stdout, "qj "+version()+"\n")
			return err
		}},
	}
	cmd.HideHelpCommand = true // the description names it
	for _, c := range cmd.Commands {
		c.OnUsageError = usageProblem
		c.HideHelpCommand = true
		c.UsageText = strings.TrimSpace("qj " + c.Name + " [flags] " + c.ArgsUsage)
		c.CustomHelpTemplate = ucli.CommandHelpTemplate + "\nFLAGS OF EVERY VERB:\n   -n GPUS  -c CLUSTER  -p YAML  --config FILE  -o json  -v   (qj help)\n"
		hideDefaults(c.Flags)
	}
	cmd.Action = func(c *ucli.Context) error { return ucli.ShowAppHelp(c) }
	return cmd
}

// hideDefaults keeps "(default: false)" out of the help.
func hideDefaults(flags []ucli.Flag) {
	for _, f := range flags {
		if f, ok := f.(*ucli.BoolFlag); ok {
			f.DisableDefaultText = true
		}
	}
}

func usageProblem(_ *ucli.Context, err error, _ bool) error { return usagef("%v", err) }

func (a *app) globalFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.IntFlag{Name: "num_gpu", Aliases: []string{"n"}, Usage: "`GPUS` in all, one process each; 0: one process, no GPU", DefaultText: "num_gpu of the cluster, else 1"},
		&ucli.StringFlag{Name: "cluster", Aliases: []string{"c"}, Usage: "`NAME` of the cluster"},
		&ucli.StringSliceFlag{Name: "param", Aliases: []string{"p"}, Usage: "`YAML` or @FILE, laid over the cluster's configuration"},
		&ucli.StringFlag{Name: "config", Usage: "`FILE` to read instead of the nearest qj.yaml"},
		&ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of results: json"},
		&ucli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say more"},
	}
}

func (a *app) readGlobals(c *ucli.Context) error {
	a.global = globals{
		numGPU: c.Int("num_gpu"), hasN: c.IsSet("num_gpu"), cluster: c.String("cluster"), params: c.StringSlice("param"),
		config: c.String("config"), output: c.String("output"), verbose: c.Bool("verbose"),
	}
	if a.global.hasN && a.global.numGPU < 0 {
		return usagef("-n %d is negative", a.global.numGPU)
	}
	switch a.global.output {
	case "", "json":
		return nil
	}
	return usagef("-o %s: the only output format is json", a.global.output)
}

func (a *app) json() bool { return a.global.output == "json" }

// version is that of the module, or of the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && info.Main.Version == "(devel)" {
			return setting.Value[:min(12, len(setting.Value))]
		}
	}
	return info.Main.Version
}

const description = `Flags work before the verb, after it and after its ids; only the command of submit and ssh is
taken word by word. Ids may be shortened to their end (e2fc7); @last is your newest run.
qj help VERB tells more of one verb.

  qj init                              snapshot the code of this folder
  qj -n 8 submit python train.py       run it as 8 processes, one per GPU
  qj q                                 your runs
  qj q e2fc7                           one run: pull its logs, last lines, paths, what is going on
  qj logs -f e2fc7                     follow rank 0
  qj abort e2fc7 · qj resubmit e2fc7 · qj ssh e2fc7

No configuration is needed to run on this machine; a qj.yaml adds clusters and stores.`
