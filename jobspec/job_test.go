package jobspec

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"text/template"
	"time"

	"gopkg.in/yaml.v3"
)

func TestValidate(t *testing.T) {
	ok := func(change func(*Job)) Job {
		j := Job{Command: []string{"python", "train.py", "", "a b", "$x"}, Env: map[string]string{"A": "", "lower_case": "1"}, Secrets: []string{"TOKEN"}, Subdir: "src/a"}
		change(&j)
		return j
	}
	for _, test := range []struct {
		name, err string
		change    func(*Job)
	}{
		{"as it is", "", func(*Job) {}},
		{"at the root", "", func(j *Job) { j.Subdir = "" }},
		{"folder with dots in front", "", func(j *Job) { j.Subdir = "..data/x" }},
		{"no command", "the command is empty", func(j *Job) { j.Command = nil }},
		{"empty program", "the command is empty", func(j *Job) { j.Command = []string{"", "x"} }},
		{"NUL in the command", "NUL byte", func(j *Job) { j.Command = []string{"a", "b\x00c"} }},
		{"absolute folder", `working folder "/etc"`, func(j *Job) { j.Subdir = "/etc" }},
		{"parent", `working folder ".."`, func(j *Job) { j.Subdir = ".." }},
		{"outside", `working folder "../x"`, func(j *Job) { j.Subdir = "../x" }},
		{"roundabout", `working folder "a/../../x"`, func(j *Job) { j.Subdir = "a/../../x" }},
		{"trailing slash", `working folder "a/"`, func(j *Job) { j.Subdir = "a/" }},
		{"empty name", `environment name ""`, func(j *Job) { j.Env[""] = "x" }},
		{"name with =", `environment name "A=B"`, func(j *Job) { j.Env["A=B"] = "x" }},
		{"secret with =", `environment name "T=x"`, func(j *Job) { j.Secrets = []string{"T=x"} }},
		{"secret with NUL", `environment name "T\x00"`, func(j *Job) { j.Secrets = []string{"T\x00"} }},
		{"value with NUL", `environment variable A holds a NUL byte`, func(j *Job) { j.Env["A"] = "a\x00" }},
	} {
		err := ok(test.change).Validate()
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.err)
		}
	}
}

func TestCheckFormat(t *testing.T) {
	for format, want := range map[int]string{
		Format:     "",
		Format + 1: "the plan has format 2, this qj reads up to 1: update qj",
		0:          "the plan has no format",
		-1:         "the plan has no format",
	} {
		got := ""
		if err := CheckFormat("the plan", format); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("format %d: %q, want %q", format, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	type document struct {
		Hold Duration `json:"hold,omitempty" yaml:"hold,omitempty"`
	}
	for text, want := range map[string]time.Duration{
		`"90s"`: 90 * time.Second, `"4h"`: 4 * time.Hour, `"1h30m"`: 90 * time.Minute, `"1.5s"`: 1500 * time.Millisecond, `"-1s"`: -time.Second,
	} {
		for name, decode := range map[string]func([]byte, any) error{"json": json.Unmarshal, "yaml": yaml.Unmarshal} {
			var d document
			if err := decode([]byte(`{"hold": `+text+`}`), &d); err != nil || time.Duration(d.Hold) != want {
				t.Errorf("%s %s: %v, %v", name, text, time.Duration(d.Hold), err)
			}
		}
	}
	for _, text := range []string{`"soon"`, `"10"`, `""`, `"1d"`} {
		var d document
		if err := json.Unmarshal([]byte(`{"hold": `+text+`}`), &d); err == nil || !strings.Contains(err.Error(), "is not a duration (like 90s, 10m or 4h)") {
			t.Errorf("%s: %v", text, err)
		}
	}
	body, err := json.Marshal(document{Duration(90 * time.Minute)})
	if err != nil || string(body) != `{"hold":"1h30m0s"}` {
		t.Errorf("written as %s, %v", body, err)
	}
	if body, err := json.Marshal(document{}); err != nil || string(body) != `{}` {
		t.Errorf("none is written as %s, %v", body, err)
	}
}

// No way of printing or encoding shows the value, alone or inside of something.
func TestSecretStaysSecret(t *testing.T) {
	const value = "hunter2-value"
	s := Secret(value)
	private := Private{Key: s, Secrets: map[string]Secret{"TOKEN": s}}
	for _, v := range []any{s, &s, []Secret{s}, map[string]Secret{"a": s}, struct{ S Secret }{s}, private, &private, fmt.Errorf("put %v", s)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%c", "%U", "%t", "%e", "%20s", "%-9.3v", "%z"} {
			assertMasked(t, fmt.Sprintf("%s of %T", verb, v), fmt.Sprintf(verb, v), value)
		}
		assertMasked(t, "print", fmt.Sprint(v)+fmt.Sprintln(v), value)
		body, err := json.Marshal(v)
		assertMasked(t, "json", string(body), value)
		text, yamlErr := yaml.Marshal(v)
		assertMasked(t, "yaml", string(text), value)
		if err != nil || yamlErr != nil {
			t.Error(err, yamlErr)
		}
	}
	text, err := xml.Marshal(s)
	if err != nil {
		t.Error(err)
	}
	assertMasked(t, "xml", string(text), value)
	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("delivered", "secret", s, "private", private)
	}
	if err := template.Must(template.New("").Parse("{{.Key}} {{.}} {{printf `%s` .Key}}")).Execute(&out, private); err != nil {
		t.Error(err)
	}
	assertMasked(t, "log and template", out.String(), value)
	if s.Reveal() != value {
		t.Error("Reveal does not")
	}
	if fmt.Sprintf("%v|%s|%q", s, s, s) != "***|***|***" {
		t.Errorf("printed as %v|%s|%q", s, s, s)
	}
}

func assertMasked(t *testing.T, what, text, value string) {
	t.Helper()
	if strings.Contains(text, value) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", value)) {
		t.Errorf("%s shows it: %s", what, text)
	}
}

func TestSecretIsReadFromConfiguration(t *testing.T) {
	var c struct{ Token Secret }
	if err := yaml.Unmarshal([]byte("token: abc"), &c); err != nil || c.Token.Reveal() != "abc" {
		t.Errorf("%q, %v", c.Token.Reveal(), err)
	}
}

func TestPrivateRoundTrip(t *testing.T) {
	p := Private{Key: "k\"\x01", Secrets: map[string]Secret{"A": "1", "B": "", "C": "zwei\n"}}
	body, err := p.Reveal()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParsePrivate(body)
	if err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("came back as %s, %v", body, err)
	}
	if _, err := ParsePrivate([]byte(`{"key": "hunter2`)); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a broken document: %v", err)
	}
	if body, err := json.Marshal(p); err != nil || strings.Contains(string(body), "zwei") {
		t.Errorf("plain JSON: %s, %v", body, err)
	}
}

// Every document survives a round trip, whole.
func TestDocumentsRoundTrip(t *testing.T) {
	at := time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC)
	code := 7
	job := Job{Name: "n", Command: []string{"a", "", "\u00e9 <&>"}, Env: map[string]string{"A": "1"}, Secrets: []string{"T"}, Tags: map[string]string{"t": ""},
		Code: Code{"s", "m"}, Subdir: "d", Layout: Layout{8, 1, 8, 8}, Mounts: []Mount{{"data", "/data"}}, Hold: Duration(time.Minute)}
	status := Status{State: Failed, Raw: "exited", Reason: Reason{ReasonRankFailed, "rank 1"}, Started: at, Ended: at,
		Exit: &Exit{&code, 1, 0, 9, []string{"x"}}, Streams: map[string]int64{"0/rank-0": 5}, Folder: "/w", Stalled: true, LogsComplete: true}
	for _, v := range []any{
		&Run{Format, "a-1-00000001", "ann", "host", "local", "local", at, job, "a-1-00000002", "v1"},
		&Revision{Format, 3, at, "ann@host", "h", status, &Abort{"ann", at}, "a-1-00000003"},
		&Launch{Format, "a-1-00000001", "ann", job, StoreRef{"file", "/s", "p"}, Duration(time.Second), Duration(time.Minute), &Slots{"/d", "t", 2, true, 4}},
		&Report{Format, "a-1-00000001", 1, "host", at, "h:1", status},
		&ShellPlace{"/d", []string{"A=1"}},
	} {
		assertNoZero(t, reflect.ValueOf(v).Elem())
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := json.Unmarshal(body, back); err != nil || !reflect.DeepEqual(v, back) {
			t.Errorf("%T came back as %+v, %v", v, back, err)
		}
	}
}

// assertNoZero makes sure that a round trip really tries every field: a new one has to be filled in above.
func assertNoZero(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.IsZero() && v.Type().Field(i).Name != "Node" { // node 0 is a node
			t.Errorf("%s.%s is not filled in", v.Type(), v.Type().Field(i).Name)
		}
		if f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]() {
			assertNoZero(t, f)
		}
	}
}
