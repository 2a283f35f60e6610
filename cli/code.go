package cli

import (
	"context"
	"fmt"
	"strings"

	"qj/configs"
	"qj/jobspec"
	"qj/snapshot"
)

// codeFor is the snapshot to run in subdir: that of the last init, or of one that is made now.
func (a *app) codeFor(ctx context.Context, section *configs.Cluster, subdir string, fresh bool) (jobspec.Code, error) {
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
		return last.Code, last.holds(subdir)
	}
	if err := last.holds(subdir); err != nil {
		return jobspec.Code{}, err
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
	a.warn("%s changed since init and will not be in the run: %s%s (qj submit --init takes them)",
		count(len(changes), "file"), strings.Join(names, ", "), more)
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
