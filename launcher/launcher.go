//go:build unix

// Package launcher runs a job's command on a node: one process per rank, the code unpacked once, every
// byte of output kept and shipped, nothing left behind. It knows no scheduler: a cluster gives it machines
// and three facts (which node am I, how many are there, where is node 0), the rest is in the Launch.
//
// Two processes run a node and watch each other. The guard, which the cluster starts, starts the lead and
// holds a second end of every pipe. The lead does all the work. When the lead is killed, the guard ends
// what it left, saves what is still in the pipes, ships the logs and reports why; when the guard is
// killed, the lead does.
package launcher

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"qj/blob"
	"qj/blob/file"
	"qj/jobspec"
	"qj/logsync"
	"qj/statefile"
)

// facts are what a node gets from its cluster.
type facts struct {
	Boot   string // folder with the Launch and the Private
	Work   string // folder of this node alone
	Node   int    // which node this is, from 0
	Master string // host name or address of node 0, as the other nodes reach it

	program []string // how this program is called up to the verb, to start it again
}

// Exit codes of the launcher itself; any other code is a rank's.
const (
	exitUsage        = 2
	exitSetup        = 120
	exitNodesMissing = 122
	exitPreempted    = 124
)

const usage = `usage: qj-node run --boot FOLDER --work FOLDER --node N --master HOST
       qj-node shell --work FOLDER [-- COMMAND...]
`

// Main is all of qj-node, and of `qj launch`: it runs a node, or opens a shell in one, and returns the
// exit code. program is how it was called, up to the verb.
func Main(program, args []string, stderr io.Writer) int {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	o := facts{program: program}
	flags := flag.NewFlagSet("qj-node", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	flags.StringVar(&o.Boot, "boot", "", "")
	flags.StringVar(&o.Work, "work", "", "")
	flags.IntVar(&o.Node, "node", 0, "")
	flags.StringVar(&o.Master, "master", "127.0.0.1", "")
	roles := map[string]func() (int, error){
		"run":   func() (int, error) { return runGuard(o) },
		"lead":  func() (int, error) { return runLead(o) }, // the second process, started by the first
		"shell": func() (int, error) { return runShell(o, flags.Args()) },
	}
	role := roles[verb]
	if role == nil {
		flags.Usage()
		return exitUsage
	}
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	code, err := role()
	if err != nil {
		fmt.Fprintf(stderr, "qj-node: %v\n", err)
	}
	return code
}

// arguments are the command line, after the verb, that gives a node the facts of o.
func arguments(o facts) []string {
	return []string{"--boot", o.Boot, "--work", o.Work, "--node", fmt.Sprint(o.Node), "--master", o.Master}
}

// node is what both processes of a node know.
type node struct {
	facts   facts
	launch  jobspec.Launch
	private jobspec.Private
	store   blob.Store
	report  *reporter
	streams *streams
}

func load(o facts) (*node, error) {
	n := &node{facts: o}
	if err := statefile.ReadJSON(filepath.Join(o.Boot, jobspec.LaunchFile), &n.launch); err != nil {
		return nil, fmt.Errorf("read launch plan: %w", err)
	}
	if err := jobspec.CheckFormat("the launch plan", n.launch.Format); err != nil {
		return nil, err
	}
	if layout := n.launch.Job.Layout; o.Node < 0 || o.Node >= layout.Nodes || layout.ProcsPerNode < 1 {
		return nil, fmt.Errorf("read launch plan: node %d of %d, %d processes a node", o.Node, layout.Nodes, layout.ProcsPerNode)
	}
	private, err := os.ReadFile(filepath.Join(o.Boot, jobspec.PrivateFile))
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.Node > 0: // node 0 removed it: join will find that the run is over
	case err != nil:
		return nil, fmt.Errorf("read private values: %w", err)
	default:
		if n.private, err = jobspec.ParsePrivate(private); err != nil {
			return nil, err
		}
	}
	plain, err := openStore(n.launch.Store)
	if err != nil {
		return nil, err
	}
	// Long patience: what a node has to say matters more than when it is said.
	n.store = blob.Retry(plain, blob.Policy{Tries: 8, First: 200 * time.Millisecond, Max: 20 * time.Second})
	n.report = newReporter(n.store, o, n.launch)
	n.streams = &streams{dir: filepath.Join(o.Work, "streams"), store: plain, run: jobspec.RunFolder(n.launch.Run)}
	return n, nil
}

func openStore(ref jobspec.StoreRef) (blob.Store, error) {
	if ref.Type != "file" {
		return nil, fmt.Errorf("open store: this launcher knows no store of type %q", ref.Type)
	}
	store, err := file.Open(ref.Path)
	if err != nil {
		return nil, err
	}
	if ref.Prefix == "" {
		return store, nil
	}
	return blob.Prefix(store, ref.Prefix), nil
}

// launcherStream is where the launcher's own messages go.
func (n *node) launcherStream() logsync.Stream {
	return logsync.Stream{Name: fmt.Sprintf("launcher-%d", n.facts.Node)}
}

// exitCode is the code with which the launcher ends, for a final status.
func exitCode(s jobspec.Status) int {
	switch {
	case s.State == jobspec.Completed:
		return 0
	case s.Exit != nil && s.Exit.Code != nil:
		return *s.Exit.Code
	case s.Reason.Code == jobspec.ReasonNodesMissing:
		return exitNodesMissing
	case s.State == jobspec.Preempted || s.State == jobspec.Canceled:
		return exitPreempted
	}
	return exitSetup
}

const (
	drainLimit  = 10 * time.Minute // for the logs to reach the store; then the node ends without them
	reportLimit = 30 * time.Second // for the final report after that
)
