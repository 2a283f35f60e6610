package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"qj/configs"
	"qj/jobspec"
	"qj/snapshot"
)

func (a *app) initCommand() *ucli.Command {
	return &ucli.Command{
		Name:  "init",
		Usage: "snapshot the code of the current folder into the blob store",
		Description: `Takes what git would take: files that no .gitignore or .qjignore names. Never taken: .git, the
assets folder, qj's own configuration and account files, mapped folders. A tree that the store has
already sends nothing. With -v, tells what was left out, and why.

  qj init        in the folder with the code, or below the one of an earlier init`,
		Action: func(c *ucli.Context) error {
			if c.NArg() > 0 {
				return usagef("init takes no words, got %q", c.Args().First())
			}
			cluster, err := a.section()
			if err != nil {
				return err
			}
			p, err := a.snapshot(c.Context, cluster)
			if err != nil || !a.json() {
				return err
			}
			return a.printJSON(snapshotJSON{Project: p.Project, Store: p.Store, Snapshot: p.Code.Snapshot, Manifest: p.Code.Manifest, Files: len(p.Files)})
		},
	}
}

// snapshotJSON is what `qj init -o json` prints.
type snapshotJSON struct {
	Project  string `json:"project"`
	Store    string `json:"store"`
	Snapshot string `json:"snapshot"`
	Manifest string `json:"manifest"`
	Files    int    `json:"files"`
}

// section is the configuration of the chosen cluster.
func (a *app) section() (*configs.Cluster, error) {
	config, err := a.settings()
	if err != nil {
		return nil, err
	}
	return config.Cluster("")
}

// snapshot uploads the project's code to the cluster's store and remembers that.
func (a *app) snapshot(ctx context.Context, cluster *configs.Cluster) (*pin, error) {
	config, err := a.settings()
	if err != nil {
		return nil, err
	}
	store, err := a.store(cluster.Store)
	if err != nil {
		return nil, err
	}
	tree, err := a.scan(config, cluster)
	if err != nil {
		return nil, err
	}
	a.tellLeft(tree)
	temp, err := a.tempDir()
	if err != nil {
		return nil, err
	}
	progress, finish := a.progress()
	s, err := snapshot.Upload(ctx, store, tree, temp, progress)
	finish()
	if errors.Is(err, fs.ErrPermission) {
		err = withHint(err, leaveOut)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot code: %w", err)
	}
	p := pin{Format: jobspec.Format, Project: config.Project, Store: cluster.Store, At: a.Now().UTC(),
		Code: jobspec.Code{Snapshot: s.ID, Manifest: s.Manifest}, Files: tree.Files}
	if err := a.writePin(p); err != nil {
		return nil, err
	}
	sent := "nothing new to send"
	if s.Sent > 0 {
		sent = "sent " + bytesText(s.Sent)
	}
	a.say("snapshot %s of %s: %s, %s, %s", s.ID[:12], config.Project, count(s.Files, "file"), bytesText(s.Bytes), sent)
	return &p, nil
}

// tempDir is where layers are put together before they are sent. Not /tmp: that may be memory.
func (a *app) tempDir() (string, error) {
	dir := filepath.Join(a.cacheDir(), "tmp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make folder for temporary files: %w", err)
	}
	return dir, nil
}

// realPath follows links, as far as the path exists.
func realPath(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

const leaveOut = "a line in .gitignore or .qjignore leaves it out"

// scan lists the project's code.
func (a *app) scan(config *configs.Config, cluster *configs.Cluster) (*snapshot.Tree, error) {
	tree, err := snapshot.Scan(config.Project, snapshot.Options{Ignore: snapshot.GitIgnore(a.Getenv), Exclude: a.excluder(config, cluster)})
	if err != nil {
		return nil, withHint(err, leaveOut)
	}
	return tree, nil
}

// excluder says what no ignore file can bring back: pulled logs, mapped folders, configuration and account
// files, and qj's own folders, which hold private values, where the project is a folder above them.
func (a *app) excluder(config *configs.Config, cluster *configs.Cluster) func(path string) bool {
	paths := slices.Clone(config.Files)
	for _, dir := range []string{config.Assets, a.stateDir(), a.cacheDir(), a.dataDir()} {
		if rel, err := relative(realPath(config.Project), realPath(dir)); err == nil && rel != "" { // elsewhere it is in no danger
			paths = append(paths, rel)
		}
	}
	for _, store := range config.Stores {
		if rel, err := relative(realPath(config.Project), realPath(store.Path)); store.Type == "file" && err == nil && rel != "" {
			paths = append(paths, rel)
		}
	}
	for _, folder := range cluster.Folders {
		paths = append(paths, path.Clean(folder.Name))
	}
	return func(name string) bool {
		if slices.Contains(paths, name) || configs.IsOwnFile(name) {
			return true
		}
		_, err := jobspec.ParseRunID(path.Base(name)) // logs that another project pulled
		return err == nil && path.Base(path.Dir(name)) == "assets"
	}
}

func (a *app) tellLeft(tree *snapshot.Tree) {
	for _, left := range tree.Left {
		if a.global.verbose || left.Rule == snapshot.RuleExclude {
			name := left.Path
			if left.Dir {
				name += "/"
			}
			a.say("left out %s (%s)", name, left.Rule)
		}
	}
}

// progress draws how far an upload is, on a terminal only.
func (a *app) progress() (report func(snapshot.Progress), finish func()) {
	if !isTerminal(a.Stderr) {
		return nil, func() {}
	}
	words := map[snapshot.Phase]string{snapshot.Hashing: "hashing", snapshot.Packing: "packing", snapshot.Sending: "sending"}
	shown := ""
	var last int64 = -1
	report = func(p snapshot.Progress) {
		percent := int64(100)
		if p.Total > 0 {
			percent = p.Done * 100 / p.Total
		}
		if words[p.Phase] == shown && percent == last {
			return
		}
		shown, last = words[p.Phase], percent
		fmt.Fprintf(a.Stderr, "\r%s %s %3d%% of %s\x1b[K", shown, bar(percent), percent, bytesText(p.Total))
	}
	return report, func() {
		if shown != "" {
			fmt.Fprint(a.Stderr, "\r\x1b[K")
		}
	}
}

func bar(percent int64) string {
	const width = 24
	done := int(min(max(percent, 0), 100)) * width / 100
	return "[" + strings.Repeat("=", done) + strings.Repeat(" ", width-done) + "]"
}

// bytesText shows a size as people read it.
func bytesText(n int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	size, unit := float64(n), 0
	for size >= 1000 && unit < len(units)-1 {
		size /= 1000
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}
