package cli

import (
	"strings"

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
			return p.words(), nil
		case word == "--":
			if p.verb == nil {
				return nil, usagef("a verb must stand before `--`")
			}
			p.plain = append(p.plain, args[i+1:]...)
			return p.words(), nil
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
	return p.words(), nil
}

// flagKind tells where a flag belongs and whether a value follows it.
type flagKind struct {
	global   bool
	hasValue bool
}

type arranger struct {
	app     *ucli.App
	known   map[string]flagKind // of all verbs
	verb    *ucli.Command
	globals []string
	own     []string
	plain   []string
}

// flagsOf lists the flags of the app and of every verb, by each of their names. No two verbs use one
// name for a flag with and one without a value.
func flagsOf(app *ucli.App) map[string]flagKind {
	known := map[string]flagKind{"help": {}, "h": {}}
	for _, c := range app.Commands {
		addFlags(known, c.Flags, false)
	}
	addFlags(known, app.Flags, true)
	return known
}

func addFlags(known map[string]flagKind, flags []ucli.Flag, global bool) {
	for _, f := range flags {
		_, boolean := f.(*ucli.BoolFlag)
		for _, name := range f.Names() {
			known[name] = flagKind{global: global, hasValue: !boolean}
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
		p.own = append(p.own, "--help")
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
	if near := ucli.SuggestCommand(p.app.Commands, word); near != "" {
		hint = strings.Replace(near, "Did", "did", 1) + " " + hint
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
		}
		return used, nil
	}
	name, value, inline := strings.Cut(strings.TrimLeft(word, "-"), "=")
	kind, ok := p.known[name]
	if !ok {
		return 0, withHint(usagef("unknown flag %s", word), "`qj help` lists the flags; `--` ends them")
	}
	parts := []string{"--" + name}
	used := 0
	switch {
	case kind.hasValue && inline:
		parts = []string{"--" + name + "=" + value}
	case kind.hasValue && len(rest) == 0:
		return 0, usagef("%s needs a value", word)
	case kind.hasValue:
		parts = []string{"--" + name + "=" + rest[0]}
		used = 1
	case inline:
		parts = []string{"--" + name + "=" + value}
	}
	if kind.global {
		p.globals = append(p.globals, parts...)
	} else {
		p.own = append(p.own, parts...)
	}
	return used, nil
}

func (p *arranger) words() []string {
	words := p.globals
	switch {
	case p.verb == nil:
		return append(words, p.own...)
	case p.helps():
		if len(p.plain) > 0 {
			return append(words, p.plain[0], "--help")
		}
		return append(words, "--help")
	}
	words = append(append(words, p.verb.Name), p.own...)
	return append(append(words, "--"), p.plain...)
}
