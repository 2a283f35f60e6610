package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad puts anything in the place of every file. Loading must not panic, an error is one line, and what
// loaded can be used or says why not.
func FuzzLoad(f *testing.F) {
	f.Add("clusters: {a: {backend: k8s, env: {X: ${env:X}}}}", seedAML, seedAccount)
	f.Add("stores: {vig: {prefix: a}}", seedPhilly, "{}")
	f.Add("x: &x [*x]\n<<: *x", "<<: [1]", "? [a]\n: b")
	f.Add("user: !!int abc\nclusters: {local: ~}", "config_param: {code_path: !!null x, a_folder: [1]}", "account_name: !!binary ==")
	f.Add("clusters: {a: {backend: aml, blob_mount_info: 3, docker: []}}", "env: 1\nnum_gpu: ''", "{azure_blob_config_file: {a: b}}")
	dir := f.TempDir()
	for _, folder := range []string{"aux_data/aml", "aux_data/configs"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, qj, cluster, account string) {
		for name, text := range map[string]string{
			"qj.yaml": qj, "aux_data/aml/aml.yaml": cluster, "aux_data/configs/philly_vc.yaml": cluster,
			"aux_data/configs/multi_philly_vc.yaml": account, "aux_data/configs/vig_account.yaml": account, "aux_data/aml/config.json": account,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		o := options(dir, map[string]string{"X": "\x00${env:X}", "PHILLY_PASSWORD": "hunter2"})
		o.Params = []string{account}
		c, err := Load(o)
		if err != nil {
			oneLineOnly(t, err)
			return
		}
		for name := range c.Clusters {
			if cluster, err := c.Cluster(name); err != nil {
				oneLineOnly(t, err)
			} else if err := cluster.Decode(&localSection{}); err != nil {
				oneLineOnly(t, err)
			}
		}
		for _, s := range c.Settings {
			if strings.Contains(s.Value, "hunter2") {
				t.Errorf("%s shows a secret", s.Path)
			}
		}
	})
}

func oneLineOnly(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error has several lines: %q", err)
	}
}
