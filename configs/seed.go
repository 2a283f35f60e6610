package configs

import (
	"os"
	"path/filepath"
	"strings"
)

// The seed's files, below the project folder. Paths in them are relative to the project folder, too.
const (
	amlFolder      = "aux_data/aml"
	amlFile        = "aux_data/aml/aml.yaml"
	workspaceFile  = "aux_data/aml/config.json"
	accountFolder  = "aux_data/configs"
	accountSuffix  = "_account.yaml"
	phillyFile     = "aux_data/configs/philly_vc.yaml"
	phillyListFile = "aux_data/configs/multi_philly_vc.yaml"
)

// seeds is what was found of the seed's clusters.
type seeds struct {
	clusters *node
	aml      string // the cluster that the seed's AML tool would use by default
	amlWhy   string
	philly   string
}

// readSeeds reads the seed's cluster files. A bad one spoils its own clusters only.
func (l *loader) readSeeds() {
	l.seeds.clusters = newMapping(l.builtin)
	l.readAML()
	l.readPhilly()
}

func (s *seeds) layer() *node {
	root := newMapping(s.clusters.at)
	root.set("clusters", s.clusters)
	return root
}

func (l *loader) readSeed(path string) (*node, error) {
	return l.read(path, false, true, l.cfg.Project)
}

func (l *loader) inProject(path string) string {
	return filepath.Join(l.cfg.Project, filepath.FromSlash(path))
}

// addSeed adds a cluster as the given backend's; of two of one name the first stays.
func (l *loader) addSeed(name, backend string, section *node, at place) {
	if before := l.seeds.clusters.fields[name]; before != nil {
		l.warn(problemf(at, "", "cluster %q is already in %s; this one is ignored", name, before.at.src.name).Error())
		return
	}
	section = section.clone()
	section.at = at
	section.set("backend", newScalar(backend, at))
	l.seeds.clusters.set(name, section)
}

// spoiltSeed records a problem of one of the seed's files: those never end Load.
func (l *loader) spoiltSeed(path string, err error) {
	l.cfg.Problems = append(l.cfg.Problems, Problem{path, err})
	l.warn(err.Error())
}

// files lists the files in a folder of the project whose names end with suffix.
func (l *loader) files(folder, suffix string) []string {
	entries, err := os.ReadDir(l.inProject(folder))
	if err != nil && !os.IsNotExist(err) {
		l.warn(problemf(place{&source{name: folder}, 0}, "", "%w", withoutPath(err)).Error())
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(l.inProject(folder), e.Name()))
		}
	}
	return paths
}
