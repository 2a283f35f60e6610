package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// seedAML is the example of the seed's own documentation, shortened in its comments only.
const seedAML = `azure_blob_config_file: null # no need to specify, legacy option
datastore_name: null # no need to specify. legacy option
aml_config: aux_data/aml/config.json 
config_param: 
   code_path:
       azure_blob_config_file: ./aux_data/configs/vigeastblob_account.yaml # the blob account information
       path: ada/code/quickdetection.zip
   data_folder:
       azure_blob_config_file: ./aux_data/configs/vigeastblob_account.yaml # the blob account information
       path: ada/data/qd_data 
   output_folder:
       azure_blob_config_file: ./aux_data/configs/vigeastblob_account.yaml # the blob account information
       path: ada/work/qd_output
use_custom_docker: true
compute_target: NC24RSV3 
aks_compute: false
docker:
    image: amsword/setup:py36pt16
experiment_name: your_alias 
use_cli_auth: True
multi_process: True
gpu_per_node: 4
env:
   NCCL_IB_DISABLE: '0'
`

const seedAccount = "account_name: acc\naccount_key: k\nsas_token: ?sv=1\ncontainer_name: con\n"

const seedPhilly = `vc: input
cluster: wu1
#cluster: sc2
user_name: ada
password: null
blob_mount_info:
    - blob_mount_point: /blob
      azure_blob_config_file: ./aux_data/configs/vigeastblob_account.yaml
      blob_fuse_options:
          - '-o'
          - "attr_timeout=240"
    - blob_mount_point: /data_blob
      azure_blob_config_file: ./aux_data/configs/vigblob_account.yaml
multi_process: true
config_param:
    code_path: /blob/ada/code/quickdetection.zip
    data_folder: /data_blob/ada/data/qd_data
    model_folder: /blob/ada/work/qd_models
    output_folder: /blob/ada/work/qd_output
docker:
    image: philly/jobs/test/vig-qd-env
    tag: py36ptnight
`

func seedProject() files {
	return files{
		"aux_data/aml/config.json":                  "{\n\t\"subscription_id\": \"s\",\n\t\"resource_group\": \"g\",\n\t\"workspace_name\": \"w\"\n}\n",
		"aux_data/aml/v100.yaml":                    seedAML,
		"aux_data/aml/aml.yaml":                     linkTo + "v100.yaml",
		"aux_data/aml/itp.yaml":                     strings.Replace(seedAML, "NC24RSV3", "itp", 1),
		"aux_data/configs/vigeastblob_account.yaml": seedAccount,
		"aux_data/configs/vigblob_account.yaml":     strings.Replace(seedAccount, "?sv", "sv", 1),
		"aux_data/configs/philly_vc.yaml":           seedPhilly,
		"aux_data/configs/multi_philly_vc.yaml":     "clusters:\n    - wu1\n    - sc3\n",
		"aux_data/configs/extra_tracking_jobs.yaml": "[not, ours",
		"src/train.py":                              "",
	}
}

func TestSeedProject(t *testing.T) {
	c, dir := load(t, seedProject(), nil)
	if len(c.Warnings)+len(c.Problems) != 0 {
		t.Fatalf("warnings %q, problems %v", c.Warnings, c.Problems)
	}
	if got := c.names("clusters.", mapKeys(c.Clusters)); !reflect.DeepEqual(got, []string{"itp", "local", "sc3", "v100", "wu1"}) {
		t.Errorf("clusters = %q", got)
	}
	if v := mustCluster(t, c, ""); v.Name != "v100" || v.Store != "vigeastblob" || v.Folders[0].Store != "vigeastblob" {
		t.Errorf("v100 = %+v", v)
	}
	if sc3 := mustCluster(t, c, "sc3"); sc3.Store != "vigeastblob" || *sc3.GPUPerNode != 8 {
		t.Errorf("sc3 = %+v", sc3)
	}
	for _, name := range []string{"vigblob", "vigeastblob"} {
		if sas := c.Stores[name].Account.SAS.Reveal(); sas != "sv=1" {
			t.Errorf("sas of %s = %q", name, sas)
		}
	}
	wantSettings(t, c, map[string]string{
		"clusters.v100.workspace.workspace_name":           "w < aux_data/aml/config.json:4",
		"clusters.v100.env.NCCL_IB_DISABLE":                "0 < aux_data/aml/v100.yaml:24",
		"clusters.itp.compute_target":                      "itp < aux_data/aml/itp.yaml:15",
		"clusters.v100.store":                              "vigeastblob < aux_data/aml/v100.yaml:6",
		"clusters.wu1.blob_mount_info.0.blob_fuse_options": "[-o, attr_timeout=240] < aux_data/configs/philly_vc.yaml:9",
		"stores.vigblob.account_key":                       "*** < aux_data/configs/vigblob_account.yaml:2",
		"stores.vigblob.prefix":                            "qj < default",
	})
	want := []string{
		"aux_data/aml/aml.yaml", "aux_data/aml/config.json", "aux_data/aml/itp.yaml", "aux_data/aml/v100.yaml", "aux_data/configs/multi_philly_vc.yaml",
		"aux_data/configs/philly_vc.yaml", "aux_data/configs/vigblob_account.yaml", "aux_data/configs/vigeastblob_account.yaml",
	}
	if !reflect.DeepEqual(c.Files, want) {
		t.Errorf("files = %q", c.Files)
	}
	from := mustLoad(t, options(filepath.Join(dir, "src"), nil))
	if !reflect.DeepEqual(from.Settings, c.Settings) {
		t.Error("the configuration looks different from a subfolder")
	}
}

func mapKeys(m map[string]*Cluster) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

func TestQjFileLiesOverTheSeeds(t *testing.T) {
	f := seedProject()
	f["qj.yaml"] = "clusters:\n  v100: {num_gpu: 8, docker: {image: mine}}\n  itp: {backend: local, store: main}\n" +
		"stores:\n  main: {account_file: aux_data/configs/vigblob_account.yaml, prefix: a/b/}\n  vigeastblob: {prefix: ''}\n"
	c, _ := load(t, f, nil)
	var a AML
	v := mustCluster(t, c, "v100")
	if err := v.Decode(&a); err != nil || v.NumGPU != 8 || a.Docker.Image != "mine" || a.ComputeTarget != "NC24RSV3" {
		t.Errorf("v100 = %+v %+v, %v", v, a, err)
	}
	if itp := mustCluster(t, c, "itp"); itp.Backend != "local" || len(itp.Folders) != 0 {
		t.Errorf("itp = %+v: a change of backend replaces the section", itp)
	}
	if got := c.configuredStores(); !reflect.DeepEqual(got, []string{"main", "vigeastblob"}) {
		t.Errorf("stores = %q: an account file that has a name gets no second one", got)
	}
	if c.Stores["main"].Prefix != "a/b" || c.Stores["main"].Account.Name != "acc" || c.Stores["vigeastblob"].Prefix != "" {
		t.Errorf("main = %+v", c.Stores["main"])
	}
}

// A bad file spoils what is in it, says so, and leaves the rest to work with.
func TestBadSeedFiles(t *testing.T) {
	const v100, account, philly = "aux_data/aml/v100.yaml", "aux_data/configs/vigeastblob_account.yaml", "aux_data/configs/philly_vc.yaml"
	for _, test := range []struct{ name, file, old, new, cluster, want string }{
		{"syntax", v100, "docker:", "docker: [", "v100", `aux_data/aml/v100.yaml:14: did not find expected ',' or ']'`},
		{"misspelt", v100, "compute_target", "compute_targt", "v100", `aux_data/aml/v100.yaml:15: clusters.v100: unknown key "compute_targt", did you mean "compute_target"?`},
		{"missing", v100, "compute_target: NC24RSV3", "", "v100", "aux_data/aml/v100.yaml: clusters.v100: compute_target is missing"},
		{"type", v100, "gpu_per_node: 4", "gpu_per_node: four", "v100", "aux_data/aml/v100.yaml:22: clusters.v100.gpu_per_node: want a whole number"},
		{"no config.json", v100, "config.json", "none.json", "v100", "aux_data/aml/v100.yaml:3: clusters.v100.aml_config: no file aux_data/aml/none.json"},
		{"bad config.json", "aux_data/aml/config.json", "workspace_name", "workspacename", "v100", `aux_data/aml/config.json:4: clusters.v100.workspace: unknown key "workspacename", did you mean "workspace_name"?`},
		{"short config.json", "aux_data/aml/config.json", `"s"`, `""`, "v100", "aux_data/aml/config.json:1: clusters.v100: workspace.subscription_id is missing"},
		{"account without name", account, "account_name: acc", "", "v100", "cluster v100: aux_data/configs/vigeastblob_account.yaml: stores.vigeastblob: account_name is missing"},
		{"account without container", account, "container_name: con", "", "wu1", "cluster wu1: aux_data/configs/vigeastblob_account.yaml: stores.vigeastblob: container_name is missing"},
		{"account misspelt", account, "account_key", "acount_key", "v100", `cluster v100: aux_data/configs/vigeastblob_account.yaml:2: stores.vigeastblob: unknown key "acount_key", did you mean "account_key"?`},
		{"account absent", v100, "configs/vigeastblob_account.yaml", "configs/away_account.yaml", "v100", "cluster v100: aux_data/aml/v100.yaml:6: stores.away.account_file: no file aux_data/configs/away_account.yaml"},
		{"philly missing", philly, "user_name: ada", "", "sc3", "aux_data/configs/philly_vc.yaml: clusters.sc3: user_name is missing"},
		{"philly syntax", philly, "docker:", "docker: [", "wu1", "aux_data/configs/philly_vc.yaml:20: did not find expected ',' or ']'"},
		{"philly cut", "aux_data/configs/multi_philly_vc.yaml", "clusters", "cluster", "sc3", `unknown cluster "sc3"; known: good, itp, local, v100, wu1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := seedProject()
			if !strings.Contains(f[test.file], test.old) {
				t.Fatalf("%s holds no %q", test.file, test.old)
			}
			f[test.file] = strings.ReplaceAll(f[test.file], test.old, test.new)
			f["aux_data/configs/good_account.yaml"] = seedAccount
			f["qj.yaml"] = "clusters: {good: {backend: k8s, store: good}}"
			c, _ := load(t, f, nil)
			_, err := c.Cluster(test.cluster)
			wantError(t, err, test.want)
			if len(c.Problems) == 0 || len(c.Warnings) == 0 {
				t.Error("nothing is said of the bad file")
			}
			mustCluster(t, c, "good")
		})
	}
}

func TestUnknownKeysOfSeedFilesAreWarnedOf(t *testing.T) {
	f := seedProject()
	f["aux_data/aml/v100.yaml"] += "favourite_colour: blue\nenv: {A: b}\n"
	f["aux_data/configs/vigblob_account.yaml"] += "comment: ours\n"
	c, _ := load(t, f, nil)
	want := []string{
		`aux_data/aml/v100.yaml:25: clusters.v100: unknown key "favourite_colour" is ignored`,
		`aux_data/aml/v100.yaml:26: key "env" is already set on line 23; the last one counts`,
		`aux_data/configs/vigblob_account.yaml:5: stores.vigblob: unknown key "comment" is ignored`,
	}
	if !reflect.DeepEqual(c.Warnings, want) {
		t.Errorf("warnings = %q", c.Warnings)
	}
	v := mustCluster(t, c, "v100")
	if err := v.Decode(&AML{}); err != nil || !reflect.DeepEqual(v.Env, map[string]string{"A": "b"}) {
		t.Errorf("decode: %v, env %v", err, v.Env)
	}
}

func TestAMLConfigPath(t *testing.T) {
	f := seedProject()
	f["elsewhere/h100.yaml"] = strings.Replace(seedAML, "NC24RSV3", "h100", 1)
	f["link.yaml"] = linkTo + "elsewhere/h100.yaml"
	for _, path := range []string{"link.yaml", "./elsewhere/h100.yaml"} {
		c, _ := load(t, f, map[string]string{"AML_CONFIG_PATH": path})
		if h := mustCluster(t, c, ""); h.Name != "h100" || c.Clusters["v100"] == nil {
			t.Errorf("%s gives %+v", path, h)
		}
	}
	c, _ := load(t, f, map[string]string{"AML_CONFIG_PATH": "gone.yaml"})
	_, err := c.Cluster("")
	wantError(t, err, "gone.yaml: stat: no such file or directory")
}

func TestDanglingLinkSaysWhichClusterWasMeant(t *testing.T) {
	c, _ := load(t, files{"aux_data/aml/aml.yaml": linkTo + "a100.yaml"}, nil)
	_, err := c.Cluster("")
	if c.Default != "a100" {
		t.Errorf("default = %q", c.Default)
	}
	wantError(t, err, "aux_data/aml/aml.yaml: stat: no such file or directory")
}

func TestSinglePhillyAccount(t *testing.T) {
	c, _ := load(t, files{
		"aux_data/configs/philly_vc.yaml": "vc: input\ncluster: philly-prod-cy4\nuser_name: u\nblob_mount_point: /blob\n" +
			"azure_blob_config_file: ./aux_data/configs/b_account.yaml\nconfig_param: {code_path: /blob/x.zip}\npassword: p\n",
		"aux_data/configs/a_account.yaml": seedAccount,
		"aux_data/configs/b_account.yaml": seedAccount,
	}, map[string]string{"PHILLY_PASSWORD": "from the environment"})
	cluster := mustCluster(t, c, "")
	var p Philly
	if err := cluster.Decode(&p); err != nil || p.Password.Reveal() != "p" || *cluster.GPUPerNode != 8 || cluster.Store != "b" {
		t.Errorf("%+v %+v, %v", cluster, p, err)
	}
}

func TestAccountBehindAPathInAPhillyContainer(t *testing.T) {
	section, _, err := parse([]byte("blob_mount_info:\n- {blob_mount_point: /b, azure_blob_config_file: outer}\n- {blob_mount_point: /b/in/, azure_blob_config_file: inner}\n"), &source{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/b/x": "outer", "/b": "outer", "/b/in/x": "inner", "/b/inx": "outer", "/bx": "", "/hdfs/x": ""} {
		got := ""
		if account := phillyAccount(section, path); account != nil {
			got = account.scalar.Value
		}
		if got != want {
			t.Errorf("account behind %s = %q, want %q", path, got, want)
		}
	}
}

func TestTwoClustersOfOneName(t *testing.T) {
	f := seedProject()
	f["aux_data/aml/wu1.yaml"] = seedAML
	c, _ := load(t, f, nil)
	want := []string{`aux_data/configs/philly_vc.yaml: cluster "wu1" is already in aux_data/aml/wu1.yaml; this one is ignored`}
	if !reflect.DeepEqual(c.Warnings, want) || mustCluster(t, c, "wu1").Backend != "aml" {
		t.Errorf("warnings = %q", c.Warnings)
	}
}

func TestWordsMayBeOneWord(t *testing.T) {
	f := seedProject()
	f["aux_data/aml/v100.yaml"] += "zip_options: -x\nelastic_num_gpu: [4, 8]\n"
	c, _ := load(t, f, nil)
	var a AML
	if err := mustCluster(t, c, "v100").Decode(&a); err != nil || !reflect.DeepEqual(a.ZipOptions, Words{"-x"}) || !reflect.DeepEqual(a.ElasticNumGPU, Words{"4", "8"}) {
		t.Errorf("%+v, %v", a, err)
	}
	f["aux_data/aml/v100.yaml"] += "compile_args: x\nzip_options: {a: b}\n"
	c, _ = load(t, f, nil)
	_, err := c.Cluster("v100")
	wantError(t, err, "aux_data/aml/v100.yaml:28: clusters.v100.zip_options: want a word or a list of words")
}

func TestPhillyListWithoutItsSection(t *testing.T) {
	c, _ := load(t, files{"aux_data/configs/multi_philly_vc.yaml": "clusters: [wu1, sc2]"}, nil)
	_, err := c.Cluster("sc2")
	wantError(t, err, "aux_data/configs/philly_vc.yaml: stat: no such file or directory")
	if c.Default != "wu1" {
		t.Errorf("default = %q", c.Default)
	}
}

func TestTwoAccountsOfOneName(t *testing.T) {
	f := seedProject()
	f["aux_data/aml/itp.yaml"] = strings.ReplaceAll(f["aux_data/aml/itp.yaml"], "aux_data/configs/vigeastblob", "other/vigeastblob")
	f["other/vigeastblob_account.yaml"] = strings.Replace(seedAccount, ": acc", ": second", 1)
	f["aux_data/configs/local_account.yaml"] = seedAccount
	c, _ := load(t, f, nil)
	if got := mustCluster(t, c, "itp").Store; got != "vigeastblob2" || c.Stores[got].Account.Name != "second" {
		t.Errorf("store of itp = %q", got)
	}
	if c.Stores["local"].Type != "azure" {
		t.Errorf("local = %+v", c.Stores["local"])
	}
}

func TestUnreadableAccountFolder(t *testing.T) {
	f := seedProject()
	dir := f.write(t)
	folder := filepath.Join(dir, "aux_data", "configs")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, options(dir, nil))
	if !strings.Contains(strings.Join(c.Warnings, "\n"), "aux_data/configs: ") {
		t.Errorf("warnings = %q", c.Warnings)
	}
}
