package configs

import (
	"slices"
	"strings"

	"qj/jobspec"
)

// Philly is the section of a cluster of backend philly, without the keys that all clusters share.
type Philly struct {
	VC        string         `yaml:"vc"`
	Cluster   string         `yaml:"cluster"`
	UserName  string         `yaml:"user_name"`
	Password  jobspec.Secret `yaml:"password"` // else PHILLY_PASSWORD
	Mount     string         `yaml:"blob_mount_point"`
	Account   string         `yaml:"azure_blob_config_file" config:"path"`
	Mounts    []PhillyMount  `yaml:"blob_mount_info"` // several, instead of the two above
	Docker    Docker         `yaml:"docker"`
	DockerTag string         `yaml:"docker_tag"` // instead of docker.tag
	DryRun    bool           `yaml:"dry_run"`
	IsDebug   bool           `yaml:"isDebug"`
}

// PhillyMount is a blob container mounted in the job's container.
type PhillyMount struct {
	Point   string   `yaml:"blob_mount_point"`
	Account string   `yaml:"azure_blob_config_file" config:"path"`
	Options []string `yaml:"blob_fuse_options"`
}

// readPhilly makes one cluster of each name in multi_philly_vc.yaml, all with the section in
// philly_vc.yaml; without that list, the one that philly_vc.yaml names.
func (l *loader) readPhilly() {
	one, several := l.inProject(phillyFile), l.inProject(phillyListFile)
	if !exists(one) && !exists(several) {
		return
	}
	section, err := l.readSeed(one)
	names := l.phillyNames(several)
	if err == nil && len(names) == 0 && section.text("cluster") == "" {
		err = problemf(place{section.at.src, 0}, "", "cluster is missing")
	}
	if err != nil {
		if len(names) == 0 {
			names = []string{"philly"} // it has no other name
		}
		l.seeds.philly = names[0]
		for _, name := range names {
			l.spoiltSeed("clusters."+name, err)
		}
		return
	}
	first := section.text("cluster")
	if len(names) == 0 {
		names = []string{first}
	}
	l.seeds.philly = names[0]
	if slices.Contains(names, first) {
		l.seeds.philly = first
	}
	for _, name := range names {
		named := section.clone()
		if name != first {
			named.set("cluster", newScalar(name, place{&source{name: phillyListFile, file: several, seed: true}, 0}))
		}
		l.addSeed(name, backendPhilly, named, place{section.at.src, 0})
	}
}

// phillyNames reads the list of clusters. A bad list is a problem of its own; the one cluster that
// philly_vc.yaml names still works.
func (l *loader) phillyNames(path string) []string {
	if !exists(path) {
		return nil
	}
	var listed struct {
		Clusters []string `yaml:"clusters"`
	}
	root, err := l.readSeed(path)
	if err == nil {
		err = l.decode(root, &listed, "")
	}
	if err == nil && (len(listed.Clusters) == 0 || slices.Contains(listed.Clusters, "")) {
		err = problemf(place{root.at.src, 0}, "", "clusters is missing, or names nothing")
	}
	if err != nil {
		l.spoiltSeed(phillyListFile, err)
		return nil
	}
	return listed.Clusters
}

// philly adds the platform's defaults to a section, and checks it.
func (l *loader) philly(section *node, path string) (*node, error) {
	section = section.clone()
	fill(section, "gpu_per_node", plainScalar(phillyGPUPerNode(section.text("cluster")), l.defaults))
	if password := l.Getenv(envPhillyPassword); password != "" {
		fill(section, "password", newScalar(password, place{src: &source{name: envPhillyPassword}}))
	}
	var p Philly
	if err := l.decode(own(section), &p, path, commonKeys()...); err != nil {
		return section, err
	}
	return section, require(section, path, [][]string{{"vc"}, {"cluster"}, {"user_name"}})
}

// phillyGPUPerNode is how large a machine of a Philly cluster is.
func phillyGPUPerNode(cluster string) string {
	switch strings.TrimPrefix(cluster, "philly-prod-") {
	case "sc3", "cy4":
		return "8"
	}
	return "4"
}

// phillyAccount is the node that names the account behind a path in the job's container; nil for hdfs. Of
// mount points inside each other the inner one counts.
func phillyAccount(section *node, path string) *node {
	mounts := []*node{section}
	if several := section.get("blob_mount_info"); several != nil {
		mounts = append(mounts, several.items...)
	}
	var account *node
	longest := 0
	for _, mount := range mounts {
		point := strings.TrimSuffix(mount.text("blob_mount_point"), "/")
		if strings.HasPrefix(path+"/", point+"/") && len(point) > longest {
			account, longest = mount.get(accountKey), len(point)
		}
	}
	return account
}
