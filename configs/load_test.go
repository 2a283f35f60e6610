package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestNoConfigurationIsLocal(t *testing.T) {
	c, dir := load(t, nil, nil)
	if c.Project != dir || c.Default != "local" || c.Assets != filepath.Join(dir, "assets") || len(c.Warnings)+len(c.Problems)+len(c.Files) != 0 {
		t.Errorf("config = %+v", c)
	}
	cluster := mustCluster(t, c, "")
	if cluster.Backend != "local" || cluster.Store != "local" || cluster.NumGPU != 1 || !cluster.MultiProcess || cluster.GPUPerNode != nil {
		t.Errorf("cluster = %+v", cluster)
	}
	if s := c.Stores["local"]; s.Type != "file" || s.Path != "/data/store" {
		t.Errorf("store = %+v", s)
	}
	want := []Setting{
		{"assets", filepath.Join(dir, "assets"), "default"},
		{"clusters.local.backend", "local", "default"},
		{"clusters.local.grace", "10s", "default"},
		{"clusters.local.join_timeout", "10m", "default"},
		{"clusters.local.multi_process", "true", "default"},
		{"clusters.local.num_gpu", "1", "default"},
		{"clusters.local.store", "local", "default"},
		{"default_cluster", "local", "default"},
		{"stores.local.path", "/data/store", "default"},
		{"stores.local.type", "file", "default"},
	}
	if !reflect.DeepEqual(c.Settings, want) {
		t.Errorf("settings = %+v", c.Settings)
	}
}

func TestProjectFolder(t *testing.T) {
	dir := files{
		"a/qj.yaml": "", "a/b/c/x": "", "d/aux_data/x": "", "d/e/x": "", "pinned/f/x": "", "g/x": "", "h/aux_data": "a file", "h/i/x": "",
	}.write(t)
	pinned := func(d string) bool { return d == filepath.Join(dir, "pinned") }
	for stand, want := range map[string]string{"a/b/c": "a", "a": "a", "d/e": "d", "pinned/f": "pinned", "g": "g", "h/i": "h/i"} {
		o := options(filepath.Join(dir, stand), nil)
		o.Pinned = pinned
		if got := mustLoad(t, o).Project; got != filepath.Join(dir, want) {
			t.Errorf("project of %s = %s, want %s", stand, got, want)
		}
	}
}

func TestProjectFileLiesOverOnesOwn(t *testing.T) {
	dir := files{
		"own/qj.yaml":     "user: alice\nassets: logs\nclusters:\n  gpu: {backend: k8s, num_gpu: 2, env: {A: a, B: b}}\n  other: {backend: k8s, namespace: x}\nstores:\n  one: {type: file, path: one}\n",
		"project/qj.yaml": "clusters:\n  gpu:\n    num_gpu: 4\n    env: {B: c, A: null}\n  other: {backend: local}\nstores: # all commented out\n",
		"project/sub/x":   "",
	}.write(t)
	o := options(filepath.Join(dir, "project", "sub"), nil)
	o.ConfigDir = filepath.Join(dir, "own")
	c := mustLoad(t, o)
	own := filepath.Join(dir, "own", "qj.yaml")
	wantSettings(t, c, map[string]string{
		"user":                     "alice < " + own + ":1",
		"assets":                   filepath.Join(dir, "own", "logs") + " < " + own + ":2",
		"clusters.gpu.backend":     "k8s < " + own + ":4",
		"clusters.gpu.num_gpu":     "4 < qj.yaml:3",
		"clusters.gpu.env.B":       "c < qj.yaml:4",
		"clusters.gpu.env.A":       "",
		"clusters.other.backend":   "local < qj.yaml:5",
		"clusters.other.namespace": "",
		"stores.one.path":          "one < " + own + ":7",
	})
	if got := c.Stores["one"].Path; got != filepath.Join(dir, "own", "one") {
		t.Errorf("path = %s, want it beside the file that names it", got)
	}
	if gpu := mustCluster(t, c, "gpu"); gpu.NumGPU != 4 || !reflect.DeepEqual(gpu.Env, map[string]string{"B": "c"}) || gpu.Store != "one" {
		t.Errorf("gpu = %+v", gpu)
	}
	if want := []string{"qj.yaml"}; !reflect.DeepEqual(c.Files, want) {
		t.Errorf("files = %q", c.Files)
	}
}

func TestConfigFileTakesThePlaceOfTheNearest(t *testing.T) {
	dir := files{"qj.yaml": "user: project", "other.yaml": "user: other"}.write(t)
	o := options(dir, nil)
	o.File = "other.yaml"
	c := mustLoad(t, o)
	if c.User != "other" || !reflect.DeepEqual(c.Files, []string{"other.yaml", "qj.yaml"}) {
		t.Errorf("user %q, files %q", c.User, c.Files)
	}
	o.File = "missing.yaml"
	_, err := Load(o)
	wantError(t, err, "missing.yaml: stat: no such file or directory")
}

func TestOnesOwnFileIsReadOnce(t *testing.T) {
	dir := files{"qj.yaml": "user: alice"}.write(t)
	o := options(dir, nil)
	o.ConfigDir = dir
	wantSettings(t, mustLoad(t, o), map[string]string{"user": "alice < qj.yaml:1"})
}

func TestDefaultCluster(t *testing.T) {
	all := files{
		"qj.yaml":                               "default_cluster: local",
		"aux_data/aml/v100.yaml":                "compute_target: x",
		"aux_data/aml/aml.yaml":                 linkTo + "v100.yaml",
		"aux_data/configs/philly_vc.yaml":       "{vc: input, user_name: me, cluster: wu1}",
		"other.yaml":                            "compute_target: y",
		"aux_data/configs/multi_philly_vc.yaml": "clusters: [sc2, wu1]",
	}
	for _, test := range []struct {
		name, flag, env, amlEnv string
		without                 []string
		want, why               string
	}{
		{"flag", "a", "b", "", nil, "a", "-c"},
		{"variable", "", "b", "", nil, "b", "QJ_CLUSTER"},
		{"file", "", "", "", nil, "local", "default_cluster in qj.yaml:1"},
		{"aml path", "", "", "other.yaml", []string{"qj.yaml"}, "other", "AML_CONFIG_PATH"},
		{"aml link", "", "", "", []string{"qj.yaml"}, "v100", "the file behind aux_data/aml/aml.yaml"},
		{"philly", "", "", "", []string{"qj.yaml", "aux_data/aml/aml.yaml"}, "wu1", "aux_data/configs/philly_vc.yaml"},
		{"local", "", "", "", []string{"qj.yaml", "aux_data/aml/aml.yaml", "aux_data/configs/philly_vc.yaml", "aux_data/configs/multi_philly_vc.yaml"}, "local", "no default_cluster is set"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := files{}
			for name, content := range all {
				f[name] = content
			}
			for _, name := range test.without {
				delete(f, name)
			}
			o := options(f.write(t), map[string]string{"QJ_CLUSTER": test.env, "AML_CONFIG_PATH": test.amlEnv})
			o.Cluster = test.flag
			if c := mustLoad(t, o); c.Default != test.want || c.DefaultWhy != test.why {
				t.Errorf("default %q by %q", c.Default, c.DefaultWhy)
			}
		})
	}
}

func TestUnknownClusterListsTheKnown(t *testing.T) {
	dir := files{"qj.yaml": "clusters: {gpu: {backend: k8s}}"}.write(t)
	o := options(dir, nil)
	o.Cluster = "gpus"
	_, err := mustLoad(t, o).Cluster("")
	wantError(t, err, `unknown cluster "gpus" (from -c), did you mean "gpu"?; known: gpu, local`)
	o.Params = []string{"num_gpu: 2"}
	_, err = Load(o)
	wantError(t, err, `unknown cluster "gpus" (from -c), did you mean "gpu"?; known: gpu, local`)
}

func TestParamsLieOverTheChosenCluster(t *testing.T) {
	dir := files{
		"qj.yaml":   "default_cluster: a\nclusters:\n  a: {backend: k8s, num_gpu: 1, env: {A: a, B: b}}\n  b: {backend: k8s}\n",
		"over.yaml": "env: {B: c}\ngpu_per_node: 8\n",
	}.write(t)
	o := options(dir, nil)
	o.Params = []string{"{num_gpu: 3, gpu_per_node: 2}", "@over.yaml"}
	c := mustLoad(t, o)
	wantSettings(t, c, map[string]string{
		"clusters.a.num_gpu":      "3 < -p",
		"clusters.a.gpu_per_node": "8 < -p @over.yaml:2",
		"clusters.a.env.A":        "a < qj.yaml:3",
		"clusters.a.env.B":        "c < -p @over.yaml:1",
		"clusters.b.num_gpu":      "1 < default",
	})
	if a := mustCluster(t, c, "a"); a.NumGPU != 3 || *a.GPUPerNode != 8 || a.Env["B"] != "c" {
		t.Errorf("a = %+v", a)
	}
	for param, want := range map[string]string{
		"num_gpu=3":     "-p: want a mapping of keys to values, not a single value",
		"num_gpu: many": "-p: clusters.a.num_gpu: want a whole number",
		"{":             "-p: did not find expected node content",
		"@none.yaml":    "-p @none.yaml: stat: no such file or directory",
	} {
		o.Params = []string{param}
		_, err := Load(o)
		wantError(t, err, want)
	}
}

func TestBadFilesOfOnesOwn(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                                  "qj.yaml:1: did not find expected node content",
		"a:\n\tb: 1":                            "qj.yaml:2: found character that cannot start any token",
		"- 1":                                   "qj.yaml:1: want a mapping of keys to values, not a list",
		"user: a\n---\nuser: b":                 "qj.yaml: more than one YAML document",
		"user: a\nuser: b":                      `qj.yaml:2: key "user" is already set on line 1`,
		"[a]: b":                                "qj.yaml:1: a key must be a single word",
		"usr: a":                                `qj.yaml:1: unknown key "usr", did you mean "user"?`,
		"user: [a]":                             "qj.yaml:1: user: want a single value, not a list",
		"user: ${env:NOBODY}":                   `qj.yaml:1: user: environment variable "NOBODY" is not set`,
		"clusters: 5":                           "qj.yaml:1: clusters: want a mapping of keys to values, not a single value",
		"clusters:\n  gpu: 5":                   "qj.yaml:2: clusters.gpu: want a mapping of keys to values, not a single value",
		"clusters:\n  a b: {}":                  `qj.yaml:2: clusters: "a b" is not a name (no spaces, commas or slashes)`,
		"clusters:\n  gpu:":                     "qj.yaml:2: clusters.gpu: backend is missing",
		"stores: {x: {type: file}}":             "qj.yaml:1: stores.x: path is missing",
		"stores: {x: {typ: file}}":              `qj.yaml:1: stores.x: unknown key "typ", did you mean "type"?`,
		"stores: {x: {type: azur}}":             `qj.yaml:1: stores.x.type: unknown type "azur", did you mean "azure"?; known: azure, file`,
		"stores: {x: {type: azure}}":            "qj.yaml:1: stores.x: account_name is missing",
		"<<: 1":                                 "qj.yaml:1: << wants a mapping",
		"<<: [1]":                               "qj.yaml:1: << wants mappings",
		"x: &x\n  y: *x":                        "qj.yaml:2: too large or too deep for a configuration file",
		localHead + "    store: !!binary '#'":   "qj.yaml:4: clusters.box.store: want text",
		localHead + "    num_gpu: -1":           "qj.yaml:4: clusters.box.num_gpu: must not be negative",
		localHead + "    gpu_per_node: -1":      "qj.yaml:4: clusters.box.gpu_per_node: must not be negative",
		localHead + "    env: [A]":              "qj.yaml:4: clusters.box.env: want a mapping of keys to values, not a list",
		localHead + "    env: {A: [b]}":         "qj.yaml:4: clusters.box.env.A: want a single value, not a list",
		localHead + "    store: nil":            `qj.yaml:4: clusters.box.store: unknown store "nil"; known: local`,
		localHead + "    data_folder: {pth: x}": `qj.yaml:4: clusters.box.data_folder: unknown key "pth", did you mean "path"?`,
		localHead + "    data_folder: {}":       "qj.yaml:4: clusters.box.data_folder: path is missing",
		localHead + "    data_folder: {path: x, storage_type: disk}":                 `qj.yaml:4: clusters.box.data_folder: storage_type "disk" is neither blob nor file`,
		localHead + "    config_param: {data_foldr: x}":                              `qj.yaml:4: clusters.box.config_param: unknown key "data_foldr", did you mean "data_folder"?`,
		"clusters:\n  a:\n    backend: aml\n    compute_targt: x\n    workspace: {}": `qj.yaml:4: clusters.a: unknown key "compute_targt", did you mean "compute_target"?`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Load(options(files{"qj.yaml": text}.write(t), nil))
			wantError(t, err, want)
		})
	}
}

func TestAliasesThatMultiplyAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		n, next := string(rune('0'+i)), string(rune('1'+i))
		b.WriteString("a" + next + ": &a" + next + " [" + strings.Repeat("*a"+n+",", 10) + "]\n")
	}
	_, err := Load(options(files{"qj.yaml": b.String()}.write(t), nil))
	if err == nil || !strings.Contains(err.Error(), "too large or too deep") {
		t.Errorf("error = %v", err)
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	c, _ := load(t, files{"qj.yaml": "clusters:\n  a: &a {backend: k8s, num_gpu: 2, env: {X: '1'}}\n  b: {<<: *a, num_gpu: 3}\n  c: {<<: [*a], env: {}}\n"}, nil)
	b, cc := mustCluster(t, c, "b"), mustCluster(t, c, "c")
	if b.NumGPU != 3 || b.Env["X"] != "1" || cc.NumGPU != 2 || len(cc.Env) != 0 {
		t.Errorf("b = %+v, c = %+v", b, cc)
	}
}

func TestInterpolation(t *testing.T) {
	text := "clusters:\n  a:\n    backend: k8s\n    num_gpu: ${env:N}x\n    env: {X: '<${env:X}>'}\n"
	env := map[string]string{"N": "3", "X": "${env:N}: {a"}
	if _, err := Load(options(files{"qj.yaml": text}.write(t), env)); err == nil {
		t.Error("3x is a number")
	}
	c, _ := load(t, files{"qj.yaml": strings.Replace(text, "${env:N}x", "${env:N}", 1)}, env)
	if a := mustCluster(t, c, "a"); a.NumGPU != 3 || a.Env["X"] != "<${env:N}: {a>" {
		t.Errorf("a = %+v; what a variable holds must not be expanded again", a)
	}
}

func TestUnsetVariableHarmsOnlyItsUser(t *testing.T) {
	c, _ := load(t, files{"qj.yaml": "clusters:\n  a:\n    backend: k8s\n    store: disk\n    image: ${env:IMG}\nstores:\n  disk: {path: d}\n  cloud: {account_name: a, container_name: c, account_key: '${env:KEY}'}\n"}, nil)
	_, err := c.Cluster("a")
	wantError(t, err, `qj.yaml:5: clusters.a.image: environment variable "IMG" is not set`)
	_, err = c.Store("cloud")
	wantError(t, err, `qj.yaml:8: stores.cloud.account_key: environment variable "KEY" is not set`)
	if _, err := c.Store("disk"); err != nil || len(c.Warnings) != 0 || len(c.Problems) != 2 {
		t.Errorf("disk: %v, warnings %q, problems %v", err, c.Warnings, c.Problems)
	}
}

func TestStoreOfACluster(t *testing.T) {
	two := "stores: {a: {path: a}, b: {path: b}}\nclusters: {x: {backend: k8s}, y: {backend: k8s, store: b}}"
	c, _ := load(t, files{"qj.yaml": two}, nil)
	if y := mustCluster(t, c, "y"); y.Store != "b" {
		t.Errorf("y = %+v", y)
	}
	_, err := c.Cluster("x")
	wantError(t, err, "cluster x: several stores are configured (a, b): choose one by `store: NAME` in its section, or -p 'store: NAME'")
	c, _ = load(t, files{"qj.yaml": "stores: {a: {path: a}}\n"}, nil)
	if local := mustCluster(t, c, "local"); local.Store != "a" {
		t.Errorf("local = %+v", local)
	}
	c, _ = load(t, files{"aux_data/configs/a_account.yaml": "account_name: a\ncontainer_name: c\n"}, nil)
	if local := mustCluster(t, c, "local"); local.Store != "local" {
		t.Errorf("beside a cloud account: local = %+v", local)
	}
	c, _ = load(t, files{"qj.yaml": "stores: {a: {path: a}}\n"}, nil)
	_, err = c.Store("b")
	wantError(t, err, `unknown store "b"; known: a, local`)
}

func TestAssets(t *testing.T) {
	f := files{"qj.yaml": "assets: ~/logs", "sub/x": ""}
	c, _ := load(t, f, nil)
	wantSettings(t, c, map[string]string{"assets": "/home/alice/logs < qj.yaml:1"})
	c, dir := load(t, f, map[string]string{"AML_LOG_FOLDER": "pulled"})
	wantSettings(t, c, map[string]string{"assets": filepath.Join(dir, "pulled") + " < AML_LOG_FOLDER"})
}

func TestFilesThatShowSecretsGetAWarning(t *testing.T) {
	account := "account_name: a\ncontainer_name: c\naccount_key: abc\n"
	dir := files{
		"aux_data/configs/a_account.yaml": account,
		"aux_data/configs/b_account.yaml": strings.Replace(account, "abc", "${env:KEY}", 1),
		"qj.yaml":                         "clusters: {x: {backend: k8s, env: {WANDB_API_KEY: abc}}}",
	}.write(t)
	o := options(dir, map[string]string{"KEY": "k"})
	if c := mustLoad(t, o); len(c.Warnings) != 0 {
		t.Errorf("warnings %q, though nobody else can read the files", c.Warnings)
	}
	for _, name := range []string{"aux_data/configs/a_account.yaml", "aux_data/configs/b_account.yaml", "qj.yaml"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	c := mustLoad(t, o)
	want := []string{
		"aux_data/configs/a_account.yaml holds secrets and others can read it: chmod 600 " + dir + "/aux_data/configs/a_account.yaml",
		"qj.yaml holds secrets and others can read it: chmod 600 " + dir + "/qj.yaml",
	}
	if !reflect.DeepEqual(c.Warnings, want) {
		t.Errorf("warnings = %q", c.Warnings)
	}
	wantSettings(t, c, map[string]string{
		"stores.b.account_key":         "*** < aux_data/configs/b_account.yaml:3",
		"clusters.x.env.WANDB_API_KEY": "*** < qj.yaml:1",
	})
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"/a/b_c.yaml": "/a/b_c.yaml", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'"} {
		if got := shellWord(word); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", word, got, want)
		}
	}
}

func TestSecretNames(t *testing.T) {
	for name, want := range map[string]bool{
		"account_key": true, "sas_token": true, "password": true, "WANDB_API_KEY": true, "connection_string": true, "HF-TOKEN": true,
		"secrets": false, "ssh_public_key": false, "monkey": false, "container_name": false, "token_count_limit": true,
	} {
		if got := secretName(name); got != want {
			t.Errorf("secretName(%q) = %v", name, got)
		}
	}
	for value, want := range map[string]bool{
		"https://x/y?sv=1&sig=abc": true, "https://me:pw@host/": true, "AccountName=a;AccountKey=b": true, "https://host:80/a@b": false,
	} {
		if got := isSecret("clusters.x.url", value); got != want {
			t.Errorf("isSecret(%q) = %v", value, got)
		}
	}
}

func TestAPipeIsReadOnlyWhereItIsNamed(t *testing.T) {
	dir := files{"aux_data/configs/philly_vc.yaml/x": "a folder"}.write(t)
	c := mustLoad(t, options(dir, nil))
	_, err := c.Cluster("")
	wantError(t, err, "aux_data/configs/philly_vc.yaml: not a regular file")
}
