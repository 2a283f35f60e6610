package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"qj/configs"
)

func (a *app) configCommand() *ucli.Command {
	return &ucli.Command{
		Name: "config", Usage: "every setting in force and where it came from",
		Description: `Shows the chosen cluster and why, the project folder, and each value with the file and line, flag or
variable that set it. Secrets show as ***.`,
		Action: func(c *ucli.Context) error {
			if c.NArg() > 0 {
				return usagef("config takes no words, got %q", c.Args().First())
			}
			return a.showConfig()
		},
	}
}

// configJSON is what `qj config -o json` prints.
type configJSON struct {
	Cluster    string            `json:"cluster"`
	ClusterWhy string            `json:"cluster_why"`
	Project    string            `json:"project"`
	Assets     string            `json:"assets"`
	Settings   []configs.Setting `json:"settings"`
	Problems   []string          `json:"problems"`
}

func (a *app) showConfig() error {
	config, err := a.settings()
	if err != nil {
		return err
	}
	out := configJSON{
		Cluster: config.Default, ClusterWhy: config.DefaultWhy, Project: config.Project, Assets: config.Assets,
		Settings: config.Settings, Problems: a.problems(config),
	}
	var broken error
	for _, p := range out.Problems {
		if broken = exitCode(exitError); !slices.Contains(config.Warnings, p) { // else it is said already
			a.warn("%s", p)
		}
	}
	if a.json() {
		return errors.Join(a.printJSON(out), broken)
	}
	fmt.Fprintf(a.Stdout, "cluster %s (%s)\nproject %s\nlogs go to %s\n", out.Cluster, out.ClusterWhy, out.Project, out.Assets)
	var lines [][]string
	for _, s := range out.Settings {
		lines = append(lines, []string{s.Path, s.Value, s.Origin})
	}
	if len(lines) > 0 {
		if err := align(a.Stdout, lines, func(_, _ int, cell string) string { return cell }); err != nil {
			return err
		}
	}
	return broken
}

// problems lists what is wrong with every section, used or not: backends decode theirs only when needed.
func (a *app) problems(config *configs.Config) []string {
	found := []string{}
	for _, p := range config.Problems {
		found = append(found, p.Err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(config.Clusters)) {
		_, err := a.openBackend(config.Clusters[name])
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			found = append(found, fmt.Sprintf("open cluster %s: %v", name, err))
		}
	}
	if _, err := config.Cluster(""); err != nil && !slices.Contains(found, err.Error()) {
		found = append(found, err.Error())
	}
	return found
}
