package configs

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"qj/jobspec"
)

const amlGPUPerNode = "4" // the seed's default

// AML is the section of a cluster of backend aml, without the keys that all clusters share.
type AML struct {
	Account       string    `yaml:"azure_blob_config_file" config:"path"` // legacy
	Datastore     string    `yaml:"datastore_name"`                       // legacy
	WorkspaceFile string    `yaml:"aml_config" config:"path"`
	Workspace     Workspace `yaml:"workspace"` // what aml_config holds

	ComputeTarget     string         `yaml:"compute_target"`
	AKSCompute        bool           `yaml:"aks_compute"`
	PreemptionAllowed bool           `yaml:"preemption_allowed"`
	GlobalDispatch    bool           `yaml:"aks_compute_global_dispatch"`
	GlobalDispatchArg GlobalDispatch `yaml:"aks_compute_global_dispatch_arg"`
	UniqueGJDCluster  string         `yaml:"unique_gjd_cluster"`

	UseCustomDocker bool   `yaml:"use_custom_docker"`
	Docker          Docker `yaml:"docker"`
	ExperimentName  string `yaml:"experiment_name"`
	UseCLIAuth      bool   `yaml:"use_cli_auth"`

	ElasticNumGPU Words  `yaml:"elastic_num_gpu"`
	SleepIfFail   bool   `yaml:"sleep_if_fail"`
	CompileArgs   string `yaml:"compile_args"`
	ZipOptions    Words  `yaml:"zip_options"`
	CommandPrefix string `yaml:"command_prefix"`
	WithLog       bool   `yaml:"with_log"`
}

// Workspace is the content of aux_data/aml/config.json.
type Workspace struct {
	Subscription  string `yaml:"subscription_id"`
	ResourceGroup string `yaml:"resource_group"`
	Name          string `yaml:"workspace_name"`
}

// GlobalDispatch narrows where an AKS cluster may place a job.
type GlobalDispatch struct {
	VMSize          Words `yaml:"vm_size"`
	Region          Words `yaml:"region"`
	MyResourceOnly  bool  `yaml:"my_resource_only"`
	LowPriorityOkay bool  `yaml:"low_priority_vm_tolerant"`
}

// Docker is an image and the registry that has it.
type Docker struct {
	Image    string         `yaml:"image"`
	Tag      string         `yaml:"tag"` // philly only
	Address  string         `yaml:"address"`
	Username string         `yaml:"username"`
	Password jobspec.Secret `yaml:"password"`
}

// readAML finds the clusters in aux_data/aml and behind AML_CONFIG_PATH.
func (l *loader) readAML() {
	paths := map[string]string{}
	for _, path := range l.files(amlFolder, ".yaml") {
		if path != l.inProject(amlFile) {
			paths[clusterName(path)] = path
		}
	}
	if path := l.inProject(amlFile); exists(path) {
		l.noteFile(path)
		name := nameBehind(path)
		if paths[name] == "" {
			paths[name] = path
		}
		l.seeds.aml, l.seeds.amlWhy = name, "the file behind "+amlFile
	}
	if value := l.Getenv(envAMLConfig); value != "" {
		path := absolute(l.cfg.Project, l.Home, value)
		name := nameBehind(path)
		paths[name] = path
		l.seeds.aml, l.seeds.amlWhy = name, envAMLConfig
	}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		section, err := l.readSeed(paths[name])
		if err != nil {
			l.spoiltSeed("clusters."+name, err)
			continue
		}
		l.addSeed(name, backendAML, section, place{section.at.src, 0})
	}
}

// exists is true for a dangling link, too: it says which cluster was meant.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// nameBehind is the cluster that a link like aml.yaml stands for.
func nameBehind(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return clusterName(real)
	}
	if target, err := os.Readlink(path); err == nil {
		return clusterName(target)
	}
	return clusterName(path)
}

func clusterName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".yaml") }

// aml adds the seed's defaults and the workspace to a section, and checks it.
func (l *loader) aml(section *node, path string) (*node, error) {
	section = section.clone()
	fill(section, "gpu_per_node", plainScalar(amlGPUPerNode, l.defaults))
	fill(section, "use_custom_docker", plainScalar("true", l.defaults))
	if section.get("workspace") == nil {
		fill(section, "aml_config", newScalar(workspaceFile, l.defaults))
	}
	if err := l.workspace(section, path); err != nil {
		return section, err
	}
	var a AML
	if err := l.decode(own(section), &a, path, commonKeys()...); err != nil {
		return section, err
	}
	return section, require(section, path, [][]string{
		{"compute_target"}, {"workspace", "subscription_id"}, {"workspace", "resource_group"}, {"workspace", "workspace_name"},
	})
}

// workspace lays the section's own workspace over what aml_config holds.
func (l *loader) workspace(section *node, path string) error {
	ref := section.get("aml_config")
	if ref == nil {
		return nil
	}
	file, err := l.referred(ref, join(path, "aml_config"))
	if err != nil {
		return err
	}
	from, err := l.readSeed(file)
	if err == nil {
		from, err = interpolate(from, path, l.Getenv)
	}
	if err != nil {
		return err
	}
	if w := section.get("workspace"); w != nil {
		from = merge(from, w)
	}
	section.set("workspace", from)
	return nil
}

// untab lets JSON be read as YAML, which forbids tabs where JSON allows them. A JSON string cannot hold
// a tab, so none is lost.
func untab(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\t"), []byte(" ")) }
