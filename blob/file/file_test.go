package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"qj/blob"
	"qj/blob/blobtest"
	"qj/blob/file"
)

func TestMain(m *testing.M) {
	if root := os.Getenv("QJ_TEST_RACE_ROOT"); root != "" {
		os.Exit(race(root))
	}
	os.Exit(m.Run())
}

func open(t testing.TB, root string) *file.Store {
	t.Helper()
	store, err := file.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func put(t testing.TB, s blob.Store, key, body string) {
	t.Helper()
	if err := blob.PutBytes(t.Context(), s, key, []byte(body), blob.Replace); err != nil {
		t.Fatal(err)
	}
}

func list(t testing.TB, s blob.Store) []string {
	t.Helper()
	var keys []string
	for info, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func TestStore(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, t.TempDir()) })
}

func TestStoreWithoutHardLinks(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, t.TempDir()).WithoutLinks() })
}

func TestOpenCreatesNothing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "not", "there")
	store := open(t, root)
	if keys := list(t, store); len(keys) != 0 {
		t.Errorf("an absent store lists %q", keys)
	}
	if _, err := store.Stat(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat in an absent store: %v", err)
	}
	if err := store.Delete(t.Context(), "a"); err != nil {
		t.Errorf("delete in an absent store: %v", err)
	}
	if _, err := os.Lstat(filepath.Dir(root)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made a folder: %v", err)
	}
	put(t, store, "a", "x")
	if keys := list(t, store); len(keys) != 1 {
		t.Errorf("list after the first put = %q", keys)
	}
}

func TestOpenRefusesWhatIsNoFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{path, filepath.Join(path, "below"), ""} {
		if _, err := file.Open(root); err == nil {
			t.Errorf("open %q succeeded", root)
		}
	}
}

func TestOnlyTheOwnerCanRead(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	put(t, open(t, root), "a/b/c", "x")
	for path, want := range map[string]fs.FileMode{"": 0o700, ".tmp": 0o700, "a": 0o700, "a/b": 0o700, "a/b/c": 0o600} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %q = %v, %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

func TestDeleteRemovesEmptiedFolders(t *testing.T) {
	root := t.TempDir()
	store := open(t, root)
	put(t, store, "runs/r/logs/0/x", "x")
	put(t, store, "runs/r/run.json", "x")
	if err := store.Delete(t.Context(), "runs/r/logs/0/x"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(root, "runs/r/logs")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an emptied folder was left: %v", err)
	}
	if keys := list(t, store); !slices.Equal(keys, []string{"runs/r/run.json"}) {
		t.Errorf("list = %q", keys)
	}
}

func TestFirstPutSweepsOldLeftovers(t *testing.T) {
	root := t.TempDir()
	temp := filepath.Join(root, ".tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	ages := map[string]time.Duration{"put-killed": 25 * time.Hour, "put-in-progress": 23 * time.Hour}
	for name, age := range ages {
		path := filepath.Join(temp, name)
		if err := os.WriteFile(path, []byte("half of"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, open(t, root), "a", "x")
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "put-in-progress" {
		t.Errorf("leftovers after the first put: %q, %v, want only the young one", left, err)
	}
}

func TestListSkipsWhatIsNoKey(t *testing.T) {
	root := t.TempDir()
	store := open(t, root)
	put(t, store, "a/b", "x")
	for _, path := range []string{".hidden", "a/.nfs0001", ".git/config", "a/with space", "a/c~"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root, filepath.Join(root, "loop")); err != nil {
		t.Fatal(err)
	}
	if keys := list(t, store); !slices.Equal(keys, []string{"a/b"}) {
		t.Errorf("list = %q, want a/b", keys)
	}
}

// The longest key that is allowed: the suite cannot test it, a prefixed store has less room.
func TestLongestKey(t *testing.T) {
	key := strings.Repeat(strings.Repeat("k", 255)+"/", 3) + strings.Repeat("k", 254) + "/k"
	if len(key) != 1024 {
		t.Fatalf("the key has %d bytes", len(key))
	}
	store := open(t, t.TempDir())
	put(t, store, key, "x")
	if keys := list(t, store); len(keys) != 1 || keys[0] != key {
		t.Errorf("list = %q", keys)
	}
}

const raceKeys = 300

// race tries to put every key if absent, and prints those that it won.
func race(root string) int {
	store, err := file.Open(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for i := range raceKeys {
		key := fmt.Sprintf("ids/%03d", i)
		err := blob.PutBytes(context.Background(), store, key, []byte(os.Getenv("QJ_TEST_RACER")), blob.IfAbsent)
		if err == nil {
			fmt.Println(key)
		} else if !errors.Is(err, fs.ErrExist) {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func TestTwoProcesses(t *testing.T) {
	root := t.TempDir()
	var outs [2]strings.Builder
	var cmds [2]*exec.Cmd
	for i := range cmds {
		cmds[i] = exec.CommandContext(t.Context(), os.Args[0])
		cmds[i].Env = append(os.Environ(), "QJ_TEST_RACE_ROOT="+root, fmt.Sprintf("QJ_TEST_RACER=%d", i))
		cmds[i].Stdout, cmds[i].Stderr = &outs[i], os.Stderr
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	winner := map[string]string{}
	for i := range cmds {
		if err := cmds[i].Wait(); err != nil {
			t.Fatal(err)
		}
		for key := range strings.FieldsSeq(outs[i].String()) {
			if other, ok := winner[key]; ok {
				t.Errorf("%s was won by process %s and by process %d", key, other, i)
			}
			winner[key] = fmt.Sprint(i)
		}
	}
	if len(winner) != raceKeys {
		t.Errorf("%d of %d keys were won", len(winner), raceKeys)
	}
	store := open(t, root)
	for key, who := range winner {
		if body, err := blob.ReadAll(t.Context(), store, key, 100); string(body) != who || err != nil {
			t.Errorf("%s holds %q, %v, want %q", key, body, err, who)
		}
	}
}

// A suffix look-up: one entry of 10,000, without asking for the sizes of the rest.
func BenchmarkListPrefix(b *testing.B) {
	root := b.TempDir()
	if err := os.Mkdir(filepath.Join(root, "ids"), 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		if err := os.WriteFile(filepath.Join(root, "ids", fmt.Sprintf("%05d-some-run-id", i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	store := open(b, root)
	for b.Loop() {
		found := 0
		for _, err := range store.List(b.Context(), "ids/09876", "") {
			if err != nil {
				b.Fatal(err)
			}
			found++
		}
		if found != 1 {
			b.Fatalf("found %d", found)
		}
	}
}
