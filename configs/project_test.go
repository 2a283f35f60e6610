package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files is a project folder, by path. "a -> b" as content makes a link to b.
type files map[string]string

const linkTo = "-> "

func (f files) write(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range f {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, linkTo); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func options(dir string, env map[string]string) Options {
	return Options{
		Dir: dir, ConfigDir: filepath.Join(dir, "no-such-folder"), DataDir: "/data", Home: "/home/alice",
		Getenv: func(name string) string { return env[name] },
	}
}

func load(t *testing.T, f files, env map[string]string) (*Config, string) {
	t.Helper()
	dir := f.write(t)
	return mustLoad(t, options(dir, env)), dir
}

func mustLoad(t *testing.T, o Options) *Config {
	t.Helper()
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustCluster(t *testing.T, c *Config, name string) *Cluster {
	t.Helper()
	cluster, err := c.Cluster(name)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// setting is "value < origin", "" if there is none.
func setting(c *Config, path string) string {
	for _, s := range c.Settings {
		if s.Path == path {
			return s.Value + " < " + s.Origin
		}
	}
	return ""
}

func wantSettings(t *testing.T, c *Config, want map[string]string) {
	t.Helper()
	for path, value := range want {
		if got := setting(c, path); got != value {
			t.Errorf("setting %s = %q, want %q", path, got, value)
		}
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("error:\n got %v\nwant %s", err, want)
	}
}
