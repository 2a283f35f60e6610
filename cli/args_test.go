package cli

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	ucli "github.com/urfave/cli/v2"
)

func testApp() *ucli.App {
	return (&app{World: World{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}}}).commands()
}

func TestArrange(t *testing.T) {
	tests := []struct{ line, want string }{
		{"", "--help"},
		{"q", "q --"},
		{"q e2fc7", "q -- e2fc7"},
		{"query e2fc7", "q -- e2fc7"},
		{"-n 8 submit python x.py", "--num_gpu=8 submit -- python x.py"},
		{"submit -n 8 python x.py", "--num_gpu=8 submit -- python x.py"},
		{"submit python x.py -n 8", "submit -- python x.py -n 8"},
		{"submit --name a python --name b", "submit --name=a -- python --name b"},
		{"submit --name=a=b x", "submit --name=a=b -- x"},
		{"submit -- -n 8", "submit -- -n 8"},
		{"submit -- -- x", "submit -- -- x"},
		{"submit x -- y", "submit -- x -- y"},
		{"submit --dry-run x --dry-run", "submit --dry-run -- x --dry-run"},
		{"submit --env -x y", "submit --env=-x -- y"},
		{"ssh e2fc7 -o json -- ls -o", "--output=json ssh -- e2fc7 ls -o"},
		{"ssh e2fc7 ls -o x", "ssh -- e2fc7 ls -o x"},
		{"ssh e2fc7 ls -- x", "ssh -- e2fc7 ls -- x"},
		{"ssh --node 1 e2fc7", "ssh --node=1 -- e2fc7"},
		{"q e2fc7 -o json 60ce2 --tail 3", "--output=json q --tail=3 -- e2fc7 60ce2"},
		{"q --output=json", "--output=json q --"},
		{"-c gpu -p a:1 -p b:2 config", "--cluster=gpu --param=a:1 --param=b:2 config --"},
		{"a e2fc7", "abort -- e2fc7"},
		{"q -- -x", "q -- -x"},
		{"q -", "q -- -"},
		{"q -f=false x", "q --follow=false -- x"},
		{"--version", "version --"},
		{"help", "--help"},
		{"help q", "q --help"},
		{"-h", "--help"},
		{"q -h", "q --help"},
		{"-rt gpu resubmit x", "--cluster=gpu resubmit -- x"},
		{"q -no-wl x", "q --no-logs -- x"},
		{"-n 1 submit --num_gpu 2 true", "--num_gpu=2 submit -- true"},
		{"--cluster local q -c gpu", "--cluster=gpu q --"},
		{"-c local resubmit -rt gpu x", "--cluster=gpu resubmit -- x"},
		{"submit --tag a=1 --tag b=2 x", "submit --tag=a=1 --tag=b=2 -- x"},
		{"submit -hold x", "submit --hold=4h -- x"},
		{"submit -hold 5m x", "submit --hold=5m -- x"},
	}
	for _, test := range tests {
		got, err := arrange(strings.Fields(test.line), testApp())
		if err != nil || strings.Join(got, " ") != test.want {
			t.Errorf("arrange(%q) = %q, %v, want %q", test.line, strings.Join(got, " "), err, test.want)
		}
	}
}

func TestArrangeRefuses(t *testing.T) {
	tests := []struct{ line, want string }{
		{"frobnicate", `unknown verb "frobnicate"`},
		{"help frobnicate", `unknown verb "frobnicate"`},
		{"q --tial 3", "unknown flag --tial"},
		{"-x q", "unknown flag -x"},
		{"q --max", "--max needs a value"},
		{"-n", "-n needs a value"},
		{"-- q", "a verb must stand before `--`"},
		{"-rt", "-rt needs a cluster"},
	}
	for _, test := range tests {
		got, err := arrange(strings.Fields(test.line), testApp())
		var usage *usageError
		if !errors.As(err, &usage) || err.Error() != test.want {
			t.Errorf("arrange(%q) = %q, %v, want the usage error %q", test.line, got, err, test.want)
		}
	}
}

// FuzzArrange holds that no line makes arrange panic, and that the words of a command arrive unchanged, in
// order and complete, whatever they are.
func FuzzArrange(f *testing.F) {
	for _, seed := range []string{"python\nx.py", "-n\n8", "--\n--", "sh\n-c\necho 'a b'", "q\n-f", "\n", "--name\nx", "-hold\n1h", "help"} {
		f.Add("-n\n2", seed)
		f.Add(seed, "x")
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		cmd := testApp()
		free := append(strings.Split(before, "\n"), strings.Split(after, "\n")...)
		if got, err := arrange(free, cmd); err == nil && len(got) == 0 && strings.Join(free, "") != "" {
			t.Errorf("arrange(%q) lost every word", free)
		}
		command := strings.Split(after, "\n")
		for _, line := range [][]string{
			append([]string{"-n", "2", "submit", "--name", "x", "--"}, command...),
			append([]string{"submit", "-n", "2", "--name=x", "first"}, command...),
		} {
			want := command
			if line[len(line)-len(command)-1] == "first" {
				want = append([]string{"first"}, command...)
			}
			got, err := arrange(line, cmd)
			if err != nil {
				t.Fatalf("arrange(%q): %v", line, err)
			}
			end := slices.Index(got, "--")
			if end < 0 || !slices.Equal(got[end+1:], want) {
				t.Errorf("arrange(%q) = %q, want the command %q behind the first --", line, got, want)
			}
		}
	})
}

func TestSeedVerb(t *testing.T) {
	for old, want := range map[string]string{"query": "q", "f": "qf", "failed": "qf", "initi": "init", "submit": "", "q": "", "nonsense": ""} {
		if got, err := seedVerb(old); got != want || err != nil {
			t.Errorf("seedVerb(%q) = %q, %v, want %q", old, got, err, want)
		}
	}
	for old := range seedAnswers {
		_, err := seedVerb(old)
		if err == nil || !strings.HasPrefix(err.Error(), old+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("seedVerb(%q): %v, want an answer in one line", old, err)
		}
		if testApp().Command(old) != nil {
			t.Errorf("%q is answered with another word, though it is a verb", old)
		}
	}
}

func TestSeedFlag(t *testing.T) {
	tests := []struct {
		line    string
		instead []string
		used    int
	}{
		{"-hold", []string{"--hold=4h"}, 0},
		{"-hold python", []string{"--hold=4h"}, 0},
		{"-hold 2h", nil, 0},
		{"--hold python", nil, 0},
		{"-rt gpu x", []string{"--cluster=gpu"}, 1},
		{"--resubmit_to gpu", []string{"--cluster=gpu"}, 1},
		{"-no-s", []string{"--dry-run"}, 0},
		{"-no-wl x", []string{"--no-logs"}, 0},
		{"-no-lf", []string{}, 0},
		{"-n 8", nil, 0},
		{"--name x", nil, 0},
	}
	for _, test := range tests {
		words := strings.Fields(test.line)
		instead, used, err := seedFlag(words[0], words[1:])
		if err != nil || used != test.used || !slices.Equal(instead, test.instead) || (instead == nil) != (test.instead == nil) {
			t.Errorf("seedFlag(%q) = %q, %d, %v, want %q, %d", test.line, instead, used, err, test.instead, test.used)
		}
	}
	for _, line := range []string{"-rt", "-ca x", "-ic", "-from_cluster"} {
		words := strings.Fields(line)
		if _, _, err := seedFlag(words[0], words[1:]); err == nil {
			t.Errorf("seedFlag(%q): want an answer", line)
		}
	}
}
