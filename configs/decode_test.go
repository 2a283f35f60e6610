package configs

import (
	"reflect"
	"testing"
	"time"

	"qj/jobspec"
)

// localSection is what a backend brings along.
type localSection struct {
	Slots  int              `yaml:"slots"`
	Image  string           `yaml:"image"`
	Grace  jobspec.Duration `yaml:"pause"`
	Socket string           `yaml:"socket" config:"path"`
	Extra  map[string]any   `yaml:"extra"`
	Limit  *float64         `yaml:"limit"`
	Inner  `yaml:",inline"`
}

type Inner struct {
	Wait time.Duration `yaml:"wait"`
}

const localHead = "clusters:\n  box:\n    backend: local\n"

func decodeBox(t *testing.T, body string) (localSection, error) {
	t.Helper()
	c, _ := load(t, files{"qj.yaml": localHead + body}, nil)
	var into localSection
	err := mustCluster(t, c, "box").Decode(&into)
	return into, err
}

func TestDecodeFillsTheBackendsOwnStruct(t *testing.T) {
	got, err := decodeBox(t, "    slots: 4\n    num_gpu: 2\n    pause: 10s\n    wait: 1m\n    socket: ~/s\n    limit: 2\n    extra: {a: [1, {b: yes please}]}\n    image: null\n")
	if err != nil {
		t.Fatal(err)
	}
	limit := 2.0
	want := localSection{
		Slots: 4, Grace: jobspec.Duration(10 * time.Second), Inner: Inner{time.Minute}, Socket: "/home/alice/s", Limit: &limit,
		Extra: map[string]any{"a": []any{1, map[string]any{"b": "yes please"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDecodeErrorsNameThePlace(t *testing.T) {
	for body, want := range map[string]string{
		"    gpu_per_nod: 4": `qj.yaml:4: clusters.box: unknown key "gpu_per_nod", did you mean "gpu_per_node"?`,
		"    slot: 4":        `qj.yaml:4: clusters.box: unknown key "slot", did you mean "slots"?`,
		"    zebra: 4":       `qj.yaml:4: clusters.box: unknown key "zebra"`,
		"    slots: four":    `qj.yaml:4: clusters.box.slots: want a whole number`,
		"    slots: 4.7":     `qj.yaml:4: clusters.box.slots: want a whole number`,
		"    slots: [4]":     `qj.yaml:4: clusters.box.slots: want a single value, not a list`,
		"    pause: soon":    `qj.yaml:4: clusters.box.pause: "soon" is not a duration (like 90s, 10m or 4h)`,
		"    wait: 7":        `qj.yaml:4: clusters.box.wait: want a duration (like 90s, 10m or 4h)`,
		"    extra: 1":       `qj.yaml:4: clusters.box.extra: want a mapping of keys to values, not a single value`,
		"    limit: much":    `qj.yaml:4: clusters.box.limit: want a number`,
	} {
		t.Run(body, func(t *testing.T) {
			_, err := decodeBox(t, body)
			wantError(t, err, want)
		})
	}
}

func TestDecodeWantsAPointerToAStruct(t *testing.T) {
	c, _ := load(t, nil, nil)
	for _, into := range []any{nil, 1, new(int), (*localSection)(nil), localSection{}} {
		if err := mustCluster(t, c, "local").Decode(into); err == nil {
			t.Errorf("decode into %T went well", into)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"env", "vc", "gpu_per_node", "multi_process", "isDebug"}
	for word, want := range map[string]string{
		"gpu_per_nod": "gpu_per_node", "gpu_per_ndoe": "gpu_per_node", "gpus_per_nodes": "gpu_per_node",
		"isdebug": "isDebug", "envs": "env", "gpu": "", "id": "", "x": "", "": "", "a_very_long_key_of_its_own": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestEnvironmentIsAsPythonPrintsIt(t *testing.T) {
	c, _ := load(t, files{"qj.yaml": localHead + `
    env:
      ZERO: '0'
      NUMBER: 0
      FLOAT: 1.50
      TRUE: true
      NO: no
      QUOTED: 'no'
      HEX: 0x10
      NULL_ONE: null
      FROM: ${env:FROM}
      TEXT: a b
`}, map[string]string{"FROM": "true"})
	want := map[string]string{
		"ZERO": "0", "NUMBER": "0", "FLOAT": "1.50", "TRUE": "True", "NO": "False", "QUOTED": "no", "HEX": "16", "FROM": "true", "TEXT": "a b",
	}
	if got := mustCluster(t, c, "box").Env; !reflect.DeepEqual(got, want) {
		t.Errorf("env = %v, want %v", got, want)
	}
}
