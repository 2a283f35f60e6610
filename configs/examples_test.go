package configs

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"qj/jobspec"
)

// inPlace is each example where it is meant to lie.
var inPlace = map[string]string{
	"qj.yaml":              "qj.yaml",
	"vig_account.yaml":     "aux_data/configs/vig_account.yaml",
	"config.json":          "aux_data/aml/config.json",
	"aml.yaml":             "aux_data/aml/aml.yaml",
	"philly_vc.yaml":       "aux_data/configs/philly_vc.yaml",
	"multi_philly_vc.yaml": "aux_data/configs/multi_philly_vc.yaml",
}

func examples(t *testing.T, leaveOut ...string) files {
	t.Helper()
	entries, err := os.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	f := files{}
	for _, e := range entries {
		text, err := os.ReadFile("examples/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		place, ok := inPlace[e.Name()]
		if !ok {
			t.Errorf("no test loads examples/%s", e.Name())
		}
		f[place] = string(text)
	}
	for _, place := range leaveOut {
		delete(f, place)
	}
	return f
}

func TestExamplesLoadWithoutRemarks(t *testing.T) {
	c, dir := load(t, examples(t), map[string]string{"TEAM_SAS": "?sv=1&sig=fake"})
	if len(c.Warnings) != 0 || len(c.Problems) != 0 {
		t.Errorf("warnings %q, problems %v", c.Warnings, c.Problems)
	}
	if c.Default != "workstation" || c.DefaultWhy != "default_cluster in qj.yaml:7" || c.User != "alice" || c.Assets != dir+"/assets" {
		t.Errorf("default %q by %q, user %q, assets %q", c.Default, c.DefaultWhy, c.User, c.Assets)
	}
	if len(c.Files) != len(inPlace) {
		t.Errorf("files = %q", c.Files)
	}
	for _, s := range c.Settings {
		for _, secret := range []string{"sig=", "bm90LWEt"} {
			if strings.Contains(s.Value, secret) {
				t.Errorf("setting %s shows a secret", s.Path)
			}
		}
	}
}

func TestExampleQj(t *testing.T) {
	c, _ := load(t, examples(t), map[string]string{"TEAM_SAS": "?sv=1&sig=fake"})
	w := mustCluster(t, c, "workstation")
	if w.Backend != "local" || w.Store != "disk" || w.NumGPU != 2 || *w.GPUPerNode != 2 || !w.MultiProcess {
		t.Errorf("workstation = %+v", w)
	}
	if w.Env["NCCL_DEBUG"] != "WARN" || !reflect.DeepEqual(w.Secrets, []string{"WANDB_API_KEY"}) {
		t.Errorf("env %v, secrets %v", w.Env, w.Secrets)
	}
	if want := []Folder{{Name: "data", Path: "/home/alice/datasets"}}; !reflect.DeepEqual(w.Folders, want) {
		t.Errorf("folders = %+v", w.Folders)
	}
	gpu := mustCluster(t, c, "gpu")
	if gpu.Backend != "k8s" || gpu.Store != "team" || *gpu.GPUPerNode != 8 || gpu.NumGPU != 1 || gpu.Env["NCCL_IB_DISABLE"] != "0" {
		t.Errorf("gpu = %+v", gpu)
	}
	team, disk := c.Stores["team"], c.Stores["disk"]
	if team.Type != "azure" || team.Account.Name != "exampleaccount" || team.Account.SAS.Reveal() != "sv=1&sig=fake" || team.Account.Container != "runs" || team.Prefix != "alice" {
		t.Errorf("team = %+v", team)
	}
	if disk.Type != "file" || disk.Path != "/home/alice/qj-store" || disk.Prefix != "" {
		t.Errorf("disk = %+v", disk)
	}
}

func TestExampleAccount(t *testing.T) {
	c, dir := load(t, examples(t), nil)
	want := Account{
		File: dir + "/aux_data/configs/vig_account.yaml", Name: "exampleaccount", Key: "bm90LWEtcmVhbC1rZXk=",
		SAS: "sv=2021-08-06&sig=not-a-real-signature", Container: "examplecontainer",
	}
	if got := c.Stores["vig"]; got.Account != want || got.Type != "azure" || got.Prefix != "qj" {
		t.Errorf("vig = %+v (key %q, sas %q)", got, got.Account.Key.Reveal(), got.Account.SAS.Reveal())
	}
}

func TestExampleAML(t *testing.T) {
	c, dir := load(t, examples(t, "qj.yaml"), nil)
	if c.Default != "aml" || c.DefaultWhy != "the file behind aux_data/aml/aml.yaml" {
		t.Errorf("default %q by %q", c.Default, c.DefaultWhy)
	}
	cluster := mustCluster(t, c, "")
	if cluster.Backend != "aml" || cluster.Store != "vig" || cluster.NumGPU != 4 || *cluster.GPUPerNode != 4 || cluster.Env["NCCL_IB_DISABLE"] != "0" {
		t.Errorf("aml = %+v", cluster)
	}
	account, timeout := dir+"/aux_data/configs/vig_account.yaml", 3600
	if want := (&Folder{Path: "alice/code/project.zip", Store: "vig", AccountFile: account}); !reflect.DeepEqual(cluster.CodePath, want) {
		t.Errorf("code path = %+v", cluster.CodePath)
	}
	wantFolders := []Folder{
		{Name: "data", Path: "alice/data", Store: "vig", AccountFile: account, StorageType: "blob", CacheTimeout: &timeout},
		{Name: "output", Path: "alice/output", Store: "vig", AccountFile: account},
	}
	if !reflect.DeepEqual(cluster.Folders, wantFolders) {
		t.Errorf("folders = %+v", cluster.Folders)
	}
	var a AML
	if err := cluster.Decode(&a); err != nil {
		t.Fatal(err)
	}
	want := AML{
		WorkspaceFile:     dir + "/aux_data/aml/config.json",
		Workspace:         Workspace{"00000000-0000-0000-0000-000000000000", "example-group", "example-workspace"},
		ComputeTarget:     "NC24RSV3",
		GlobalDispatchArg: GlobalDispatch{VMSize: Words{"Standard_ND40rs_v2"}, Region: Words{"eastus"}, LowPriorityOkay: true},
		UseCustomDocker:   true, Docker: Docker{Image: "amsword/setup:py36pt16"}, ExperimentName: "alice", UseCLIAuth: true, WithLog: true,
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("section = %+v\nwant %+v", a, want)
	}
}

func TestExamplePhilly(t *testing.T) {
	c, dir := load(t, examples(t, "qj.yaml", "aux_data/aml/aml.yaml"), map[string]string{"PHILLY_PASSWORD": "hunter2"})
	if c.Default != "wu1" {
		t.Errorf("default %q by %q", c.Default, c.DefaultWhy)
	}
	for _, name := range []string{"wu1", "sc2"} {
		cluster := mustCluster(t, c, name)
		if cluster.Backend != "philly" || cluster.Store != "vig" || *cluster.GPUPerNode != 4 || cluster.CodePath.Path != "/blob/alice/code/project.zip" || len(cluster.Folders) != 3 {
			t.Errorf("%s = %+v", name, cluster)
		}
		var p Philly
		if err := cluster.Decode(&p); err != nil {
			t.Fatal(err)
		}
		want := Philly{
			VC: "input", Cluster: name, UserName: "alice", Password: jobspec.Secret("hunter2"),
			Mounts: []PhillyMount{{"/blob", dir + "/aux_data/configs/vig_account.yaml", []string{"-o", "attr_timeout=240", "--log-level=LOG_WARNING"}}},
			Docker: Docker{Image: "philly/jobs/test/vig-qd-env", Tag: "py36ptnight"},
		}
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%s section = %#v\nwant %#v", name, p, want)
		}
		wantSettings(t, c, map[string]string{"clusters." + name + ".password": "*** < PHILLY_PASSWORD"})
	}
	wantSettings(t, c, map[string]string{
		"clusters.sc2.cluster": "sc2 < aux_data/configs/multi_philly_vc.yaml",
		"clusters.wu1.cluster": "wu1 < aux_data/configs/philly_vc.yaml:4",
		"clusters.wu1.store":   "vig < aux_data/configs/philly_vc.yaml:13",
	})
}
