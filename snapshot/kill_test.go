package snapshot

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// roleEnv makes the test binary play the process that is killed.
const roleEnv = "QJ_SNAPSHOT_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		fmt.Println("the child ended:", play(role, os.Args[1], os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// play uploads and unpacks the tree at root, but stops for ever half way through the transfer of the layer
// that the role names.
func play(role, root, tmp, dir string) error {
	store := newMemory()
	hang := func(key string, body io.Reader) error {
		if strings.HasSuffix(key, ".zip") {
			_, err := io.CopyN(io.Discard, body, 10)
			fmt.Println("half way", err)
			select {} // until it is killed
		}
		return nil
	}
	if role == "upload" {
		store.onPut = hang
	}
	tree, err := Scan(root, Options{})
	if err != nil {
		return err
	}
	s, err := Upload(context.Background(), store, tree, tmp, nil)
	if err != nil {
		return err
	}
	store.onGet = func(key string, body io.Reader) io.Reader {
		if strings.HasSuffix(key, ".zip") {
			return io.MultiReader(io.LimitReader(body, 10), hanging{key, hang})
		}
		return body
	}
	return Unpack(context.Background(), store, s.ID, s.Manifest, dir)
}

type hanging struct {
	key  string
	hang func(string, io.Reader) error
}

func (h hanging) Read([]byte) (int, error) { return 0, h.hang(h.key, strings.NewReader("0123456789")) }

func TestKill(t *testing.T) {
	want := map[string]string{"a": strings.Repeat("x", 1000), "b/c": "2"}
	for _, role := range []string{"upload", "unpack"} {
		t.Run(role, func(t *testing.T) {
			root, tmp, parent := plant(t, want), t.TempDir(), t.TempDir()
			dir := filepath.Join(parent, "code")
			cmd := exec.CommandContext(cancelSoon(t), os.Args[0], root, tmp, dir)
			cmd.Env = append(os.Environ(), roleEnv+"="+role)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || line != "half way <nil>\n" {
				t.Errorf("the child says %q, %v", line, err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the child was not killed")
			}
			empty(t, tmp)
			if _, err := os.Lstat(dir); err == nil {
				t.Errorf("%s is there, half done", dir)
			}
			store := newMemory()
			s := upload(t, store, root)
			if err := Unpack(t.Context(), store, s.ID, s.Manifest, dir); err != nil {
				t.Fatal(err)
			}
			wantFiles(t, dir, want)
		})
	}
}
