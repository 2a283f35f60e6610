package configs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"qj/jobspec"
)

// The types of stores.
const (
	storeFile  = "file"
	storeAzure = "azure"
)

// azurePrefix keeps qj's objects together in a container that holds other things, unless `prefix` is set.
const azurePrefix = "qj"

// Store is a configured blob store.
type Store struct {
	Name    string  `yaml:"-"`
	Type    string  `yaml:"type"`               // "file" or "azure"
	Path    string  `yaml:"path" config:"path"` // of a file store
	Prefix  string  `yaml:"prefix"`             // before every key; no slash at its ends
	Account Account `yaml:",inline"`            // of an azure store

	builtIn bool
}

// Account is how to reach a container. The keys are those of the seed's *_account.yaml. With neither key
// nor SAS nor connection string, the user's own identity is meant.
type Account struct {
	File             string         `yaml:"account_file" config:"path"`
	Name             string         `yaml:"account_name"`
	Key              jobspec.Secret `yaml:"account_key"`
	SAS              jobspec.Secret `yaml:"sas_token"` // without the question mark
	ConnectionString jobspec.Secret `yaml:"connection_string"`
	Container        string         `yaml:"container_name"`
	Endpoint         string         `yaml:"endpoint"` // other than the public cloud's
}

// findStores adds the stores that nobody named: the account files at the seed's place, and those that a
// cluster's section points at.
func (l *loader) findStores(t *topLevel) {
	for _, name := range slices.Sorted(maps.Keys(t.Stores)) {
		if ref := t.Stores[name].get("account_file"); ref != nil && ref.kind == scalar {
			l.accounts[realPath(l.resolve(ref))] = name
		}
	}
	for _, path := range l.files(accountFolder, accountSuffix) {
		if l.accounts[realPath(path)] != "" {
			l.noteFile(path)
			continue
		}
		at := place{&source{name: shown(l.cfg.Project, l.Home, path), file: path, dir: l.cfg.Project, seed: true}, 0}
		l.addAccount(t, newScalar(path, at))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Clusters)) {
		t.Clusters[name].walk("", func(path string, n *node) {
			if (path == accountKey || strings.HasSuffix(path, "."+accountKey)) && !n.null() && l.accounts[realPath(l.resolve(n))] == "" {
				l.addAccount(t, n)
			}
		})
	}
}

// accountKey is the seed's key for the path of an account file.
const accountKey = "azure_blob_config_file"

// addAccount makes a store of an account file. A store of that name without an account gets this one.
func (l *loader) addAccount(t *topLevel, ref *node) {
	path := l.resolve(ref)
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".yaml"), "_account")
	name, number := base, 1
	for t.Stores[name] != nil && !takesAccount(t.Stores[name]) {
		number++
		name = fmt.Sprintf("%s%d", base, number)
	}
	section := newMapping(ref.at)
	if before := t.Stores[name]; before != nil && before.at.src != l.builtin.src {
		section = before.clone()
	}
	section.set("account_file", newScalar(path, ref.at))
	t.Stores[name] = section
	l.accounts[realPath(path)] = name
}

func takesAccount(store *node) bool {
	builtIn := store.at.src.file == ""
	return builtIn || store.get("account_file") == nil && store.get("account_name") == nil && store.text("type") != storeFile
}

func (l *loader) resolve(ref *node) string {
	return absolute(ref.at.src.dir, l.Home, ref.scalar.Value)
}

// referred is the path of a file that another one names, if it is there.
func (l *loader) referred(ref *node, path string) (string, error) {
	if err := expect(ref, scalar, path); err != nil {
		return "", err
	}
	file := l.resolve(ref)
	if !exists(file) {
		return "", lateProblemf(ref.at, path, "no file %s", shown(l.cfg.Project, l.Home, file))
	}
	return file, nil
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func (l *loader) loadStores(t *topLevel) error {
	for _, name := range slices.Sorted(maps.Keys(t.Stores)) {
		path := "stores." + name
		if l.cfg.problem(path) != nil {
			continue
		}
		store, err := l.store(t, name, path)
		if err != nil {
			if err := l.spoilt(path, err); err != nil {
				return err
			}
			continue
		}
		l.cfg.Stores[name] = store
	}
	return nil
}

func (l *loader) store(t *topLevel, name, path string) (*Store, error) {
	section := t.Stores[name].clone()
	builtIn := section.at.src == l.builtin.src
	from := section.at
	if ref := section.get("account_file"); ref != nil {
		file, err := l.referred(ref, join(path, "account_file"))
		if err != nil {
			return nil, err
		}
		account, err := l.readSeed(file)
		if err == nil {
			from = place{account.at.src, 0}
			account, err = interpolate(account, path, l.Getenv)
		}
		if err != nil {
			return nil, err
		}
		section = merge(account, section)
	}
	if section.get("path") == nil {
		fill(section, "type", newScalar(storeAzure, l.defaults))
	}
	fill(section, "type", newScalar(storeFile, l.defaults))
	if section.text("type") == storeAzure {
		fill(section, "prefix", newScalar(azurePrefix, l.defaults))
	}
	t.Stores[name] = section
	s := &Store{Name: name, builtIn: builtIn}
	if err := l.decode(section, s, path); err != nil {
		return nil, err
	}
	s.Prefix = strings.Trim(s.Prefix, "/")
	s.Account.SAS = jobspec.Secret(strings.TrimPrefix(s.Account.SAS.Reveal(), "?"))
	return s, s.check(section, from, path)
}

// check says what is missing, and in which file.
func (s *Store) check(section *node, from place, path string) error {
	switch s.Type {
	case storeFile:
		return require(section, path, [][]string{{"path"}})
	case storeAzure:
		missing := ""
		switch {
		case s.Account.Name == "" && s.Account.ConnectionString == "":
			missing = "account_name"
		case s.Account.Container == "":
			missing = "container_name"
		}
		if missing != "" {
			return problemf(from, path, "%s is missing", missing)
		}
		return nil
	}
	types := []string{storeAzure, storeFile}
	return problemf(section.get("type").at, join(path, "type"), "unknown type %q%s; known: %s", s.Type, didYouMean(s.Type, types), strings.Join(types, ", "))
}

// require names the first of the given keys that has no value.
func require(section *node, path string, keys [][]string) error {
	for _, k := range keys {
		if n := section.get(k...); n == nil || n.kind == scalar && n.scalar.Value == "" {
			at := section.at
			if parent := section.get(k[:len(k)-1]...); parent != nil {
				at = parent.at
			}
			return problemf(at, path, "%s is missing", strings.Join(k, "."))
		}
	}
	return nil
}
