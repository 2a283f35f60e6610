package configs

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

const folderSuffix = "_folder"

// Folder maps a folder below the code root, as `<name>_folder` does.
type Folder struct {
	Name         string `yaml:"-"`    // of the folder below the code root; empty for code_path
	Path         string `yaml:"path"` // in Store; or on the node, where Store is empty
	Store        string `yaml:"store"`
	AccountFile  string `yaml:"azure_blob_config_file" config:"path"` // the seed's way to name Store
	StorageType  string `yaml:"storage_type"`                         // "blob" or "file"
	FileShare    string `yaml:"file_share"`
	CacheTimeout *int   `yaml:"blob_cache_timeout"`
	Datastore    string `yaml:"datastore_name"`
}

func isFolderKey(key string) bool {
	return strings.HasSuffix(key, folderSuffix) && key != folderSuffix
}

// folders reads the mappings in config_param (the seed's place) and beside the cluster's other keys.
func (l *loader) folders(c *Cluster, section *node, path string) error {
	if params := section.get("config_param"); params != nil {
		if err := expect(params, mapping, join(path, "config_param")); err != nil {
			return err
		}
		if err := l.folderKeys(c, params, join(path, "config_param")); err != nil {
			return err
		}
	}
	direct := newMapping(section.at)
	for _, key := range section.order {
		if isFolderKey(key) || key == "code_path" {
			direct.set(key, section.fields[key])
		}
	}
	if err := l.folderKeys(c, direct, path); err != nil {
		return err
	}
	slices.SortFunc(c.Folders, func(a, b Folder) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

func (l *loader) folderKeys(c *Cluster, section *node, path string) error {
	known := map[string]field{"code_path": {}, "data_folder": {}, "output_folder": {}, "model_folder": {}}
	d := &decoder{home: l.Home}
	defer func() { l.warn(d.warnings...) }()
	for _, key := range section.order {
		value := section.fields[key]
		if !isFolderKey(key) && key != "code_path" {
			if err := d.unknown(value.at, path, key, known); err != nil {
				return err
			}
			continue
		}
		if value.null() {
			continue
		}
		f, err := l.folder(d, c.Backend, value, join(path, key))
		if err != nil {
			return err
		}
		if key == "code_path" {
			c.CodePath = &f
			continue
		}
		f.Name = strings.TrimSuffix(key, folderSuffix)
		c.Folders = slices.DeleteFunc(c.Folders, func(other Folder) bool { return other.Name == f.Name })
		c.Folders = append(c.Folders, f)
	}
	return nil
}

func (l *loader) folder(d *decoder, backend string, n *node, path string) (Folder, error) {
	var f Folder
	if n.kind == scalar {
		f.Path = n.scalar.Value
	} else if err := d.decode(n, reflect.ValueOf(&f).Elem(), path); err != nil {
		return f, err
	}
	switch {
	case f.Path == "":
		return f, problemf(n.at, path, "path is missing")
	case f.StorageType != "" && f.StorageType != "blob" && f.StorageType != "file":
		return f, problemf(n.at, path, "storage_type %q is neither blob nor file", f.StorageType)
	case f.AccountFile != "" && f.Store == "":
		f.Store = l.accounts[realPath(f.AccountFile)]
	}
	// Elsewhere the path is the node's or the store's, and this machine knows nothing of it.
	if backend == backendLocal && f.Store == "" {
		f.Path = absolute(n.at.src.dir, l.Home, f.Path)
	}
	return f, nil
}
