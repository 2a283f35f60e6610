package cli

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"qj/configs"
	"qj/jobspec"
)

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
