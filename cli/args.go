package cli

import (
	"fmt"
	"slices"
	"strings"

	"qj/configs"

	ucli "github.com/urfave/cli/v2"
)

// arrange puts the words of a command line into the one order that the library understands: global
// flags, verb, the verb's flags, `--`, everything else. By itself the library stops at the first plain
// word and takes flags behind it for ids.
func arrange(args []string, app *ucli.App) ([]string, error) {
	p := &arranger{app: app, known: flagsOf(app)}
	for i := 0; i < len(args); i++ {
		switch word := args[i]; {
		case p.literal():
			p.plain = append(p.plain, args[i:]...)
			return p.words()
		case word == "--":
			if p.verb == nil {
				return nil, usagef("a verb must stand before `--`")
			}
			p.plain = append(p.plain, args[i+1:]...)
			return p.words()
		case word == "--version" && p.verb == nil:
			p.verb = app.Command("version")
		case len(word) > 1 && word[0] == '-':
			used, err := p.flag(word, args[i+1:])
			if err != nil {
				return nil, err
			}
			i += used
		default:
			if err := p.word(word); err != nil {
				return nil, err
			}
		}
	}
	return p.words()
}

// flagKind tells where a flag belongs and what follows it.
type flagKind struct {
	name     string // the first of its names
	global   bool
	hasValue bool
	repeats  bool // each value counts; of other flags, the last one does
}

// given is a flag as it was typed, and as the library takes it.
type given struct {
	flagKind
	typed string
	text  string
}

type arranger struct {
	app   *ucli.App
	known map[string]flagKind // of all verbs
	verb  *ucli.Command
	flags []given
	plain []string
}

// flagsOf lists the flags of the app and of every verb, by each of their names. No two verbs use one
// name for a flag with and one without a value.
func flagsOf(app *ucli.App) map[string]flagKind {
	known := map[string]flagKind{"help": {name: "help"}, "h": {name: "help"}}
	for _, c := range app.Commands {
		addFlags(known, c.Flags, false)
	}
	addFlags(known, app.Flags, true)
	return known
}

func addFlags(known map[string]flagKind, flags []ucli.Flag, global bool) {
	for _, f := range flags {
		_, boolean := f.(*ucli.BoolFlag)
		_, repeats := f.(*ucli.StringSliceFlag)
		for _, name := range f.Names() {
			known[name] = flagKind{name: f.Names()[0], global: global, hasValue: !boolean, repeats: repeats}
		}
	}
}

// literal says whether the next word, whatever it is, belongs to a command: from the first plain word
// of submit on, and from the one after the id of ssh.
func (p *arranger) literal() bool {
	if p.verb == nil {
		return false
	}
	switch p.verb.Name {
	case "submit":
		return len(p.plain) > 0
	case "ssh":
		return len(p.plain) > 1
	}
	return false
}

func (p *arranger) word(word string) error {
	if p.verb != nil {
		p.plain = append(p.plain, word)
		if p.helps() && p.app.Command(word) == nil {
			return p.unknownVerb(word)
		}
		return nil
	}
	if replaced, err := seedVerb(word); err != nil {
		return err
	} else if replaced != "" {
		word = replaced
	}
	if word == "help" {
		p.verb = &ucli.Command{Name: ""}
		return nil
	}
	p.verb = p.app.Command(word)
	if p.verb == nil {
		return p.unknownVerb(word)
	}
	return nil
}

func (p *arranger) unknownVerb(word string) error {
	hint := "`qj help` lists the verbs"
	if near := configs.Nearest(word, verbs(p.app)); near != "" {
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	}
	return withHint(usagef("unknown verb %q", word), "%s", hint)
}

// helps says whether the verb is `help`, which is none of the library's.
func (p *arranger) helps() bool { return p.verb != nil && p.verb.Name == "" }

// flag files one flag away and returns how many of the following words it used.
func (p *arranger) flag(word string, rest []string) (int, error) {
	if replaced, used, err := seedFlag(word, rest); err != nil {
		return 0, err
	} else if replaced != nil {
		for _, r := range replaced {
			if _, err := p.flag(r, nil); err != nil {
				return 0, err
			}
			p.flags[len(p.flags)-1].typed = word
		}
		return used, nil
	}
	name, value, inline := strings.Cut(strings.TrimLeft(word, "-"), "=")
	kind, ok := p.known[name]
	if !ok {
		return 0, withHint(usagef("unknown flag %s", word), "`qj help` lists the flags; `--` ends them")
	}
	g := given{flagKind: kind, typed: word, text: "--" + kind.name}
	used := 0
	switch {
	case kind.hasValue && !inline && len(rest) == 0:
		return 0, usagef("%s needs a value", word)
	case kind.hasValue && !inline:
		g.text += "=" + rest[0]
		used = 1
	case inline:
		g.text += "=" + value
	}
	if !kind.repeats {
		p.flags = slices.DeleteFunc(p.flags, func(old given) bool { return old.name == g.name })
	}
	p.flags = append(p.flags, g)
	return used, nil
}

// words is the command line in the library's order. A flag that the verb does not have is an error here:
// the library's own words for it would name what nobody typed.
func (p *arranger) words() ([]string, error) {
	var globals, own []string
	help := p.helps()
	for _, f := range p.flags {
		switch {
		case f.name == "help":
			help = true
		case f.global:
			globals = append(globals, f.text)
		case p.verb != nil && !help && !hasFlag(p.verb, f.name):
			return nil, withHint(usagef("%s has no flag %s", p.verb.Name, f.typed), "`qj help %s` lists those it has", p.verb.Name)
		default:
			own = append(own, f.text)
		}
	}
	switch {
	case help && p.helps() && len(p.plain) > 0:
		return []string{p.plain[0], "--help"}, nil
	case help && p.verb != nil && !p.helps():
		return []string{p.verb.Name, "--help"}, nil
	case help || p.verb == nil && len(p.flags) == 0:
		return []string{"--help"}, nil
	case p.verb == nil:
		return nil, withHint(usagef("a verb is missing"), "`qj help` lists the verbs")
	}
	words := append(append(globals, p.verb.Name), own...)
	return append(append(words, "--"), p.plain...), nil
}

func hasFlag(verb *ucli.Command, name string) bool {
	return slices.ContainsFunc(verb.Flags, func(f ucli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// verbs lists those that people type, with their other names; one letter is near to anything.
func verbs(app *ucli.App) []string {
	var names []string
	for _, c := range app.VisibleCommands() {
		for _, name := range c.Names() {
			if len(name) > 2 {
				names = append(names, name)
			}
		}
	}
	return names
}
