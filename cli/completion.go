package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"qj/runs"
)

func (a *app) completionCommand() *ucli.Command {
	return &ucli.Command{
		Name: "completion", Usage: "print the completion script of a shell", ArgsUsage: "bash|zsh|fish",
		Description: `  source <(qj completion bash)                                    in ~/.bashrc
  source <(qj completion zsh)                                     in ~/.zshrc
  qj completion fish > ~/.config/fish/completions/qj.fish`,
		Action: func(c *ucli.Context) error {
			script, ok := completionScripts[c.Args().First()]
			if !ok || c.NArg() > 1 {
				return usagef("completion needs a shell: bash, zsh or fish")
			}
			_, err := fmt.Fprint(a.Stdout, script)
			return err
		},
	}
}

// The scripts ask qj itself. Where it knows nothing, as for the words of a command, files are completed.
var completionScripts = map[string]string{
	"bash": `_qj() {
  mapfile -t COMPREPLY < <(qj ` + completeVerb + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _qj qj
`,
	"zsh": `#compdef qj
_qj() {
  local -a found
  found=("${(@f)$(qj ` + completeVerb + ` "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[*]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
(( $+functions[compdef] )) || { autoload -U compinit && compinit; }
compdef _qj qj
`,
	"fish": `function __qj_complete
  set -l words (commandline -opc) (commandline -ct)
  qj ` + completeVerb + ` $words[2..-1] 2>/dev/null
end
complete -c qj -a '(__qj_complete)'
`,
}

// complete prints what the last word could become.
func (a *app) complete(ctx context.Context, cmd *ucli.App, words []string) error {
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
		words = words[:len(words)-1]
	}
	var verb *ucli.Command
	for _, word := range words {
		if verb = cmd.Command(word); verb != nil {
			break
		}
	}
	candidates := a.candidates(ctx, cmd, verb, last)
	if len(words) > 0 && (words[len(words)-1] == "-c" || words[len(words)-1] == "--cluster") {
		candidates = a.clusterNames()
	}
	for _, candidate := range candidates {
		if strings.HasPrefix(candidate, last) {
			fmt.Fprintln(a.Stdout, candidate)
		}
	}
	return nil
}

func (a *app) candidates(ctx context.Context, cmd *ucli.App, verb *ucli.Command, last string) []string {
	if strings.HasPrefix(last, "-") {
		flags := cmd.Flags
		if verb != nil {
			flags = append(slices.Clone(verb.Flags), flags...)
		}
		var names []string
		for _, f := range flags {
			names = append(names, "--"+f.Names()[0])
		}
		return names
	}
	switch {
	case verb == nil:
		var names []string
		for _, c := range cmd.VisibleCommands() {
			names = append(names, c.Name)
		}
		return names
	case slices.Contains([]string{"q", "logs", "wait", "abort", "resubmit", "ssh"}, verb.Name):
		return a.knownIDs(ctx)
	case verb.Name == "completion":
		return []string{"bash", "zsh", "fish"}
	}
	return nil
}

func (a *app) clusterNames() []string {
	config, err := a.settings()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Clusters))
}

// knownIDs are the suffixes of my newest runs.
func (a *app) knownIDs(ctx context.Context) []string {
	service, err := a.runsService()
	if err != nil {
		return nil
	}
	known, err := service.Known(ctx, tableRows)
	if err != nil {
		return nil
	}
	rows := make([]runs.Row, len(known))
	for i, id := range known {
		rows[i].ID = id
	}
	short := suffixes(rows)
	names := []string{runs.Last}
	for _, id := range known {
		names = append(names, short[id])
	}
	return names
}
