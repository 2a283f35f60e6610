package snapshot

import (
	"path/filepath"
	"slices"
	"testing"
)

// A store that lost or spoilt an object gets it again, and the snapshot can be unpacked.
func TestUploadHealsTheStore(t *testing.T) {
	files := map[string]string{"a": "1", "b/c": "2"}
	tests := []struct {
		name   string
		damage func(t *testing.T, store *memory, layer, manifest string)
	}{
		{"layer cut short", func(t *testing.T, store *memory, layer, _ string) { store.replace(t, layer, []byte("PK")) }},
		{"layer gone", func(t *testing.T, store *memory, layer, _ string) { remove(t, store, layer) }},
		{"manifest gone", func(t *testing.T, store *memory, _, manifest string) { remove(t, store, manifest) }},
		{"manifest unreadable", func(t *testing.T, store *memory, _, manifest string) { store.replace(t, manifest, []byte("{")) }},
		{"both cut short", func(t *testing.T, store *memory, layer, manifest string) {
			store.replace(t, layer, nil)
			store.replace(t, manifest, nil)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			store := newMemory()
			s := upload(t, store, plant(t, files))
			layer, _ := store.layer(t)
			test.damage(t, store, layer, manifestKey(s.ID))
			again := upload(t, store, plant(t, files)) // other times, so perhaps another layer
			if again.ID != s.ID || again.Sent == 0 {
				t.Errorf("second upload is %+v, want the id %s and something sent", again, s.ID)
			}
			dir := filepath.Join(t.TempDir(), "code")
			if err := Unpack(t.Context(), store, again.ID, again.Manifest, dir); err != nil {
				t.Fatal(err)
			}
			wantFiles(t, dir, files)
		})
	}
}

func remove(t *testing.T, store *memory, key string) {
	t.Helper()
	if err := store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

func TestUploadDoesNotReplaceWhatANewerQjWrote(t *testing.T) {
	root := plant(t, map[string]string{"a": "1"})
	id := upload(t, newMemory(), root).ID
	store := newMemory()
	store.replace(t, manifestKey(id), []byte(`{"format": 9}`))
	_, err := Upload(t.Context(), store, scan(t, root), t.TempDir(), nil)
	wantError(t, err, manifestKey(id), "update qj")
}

func TestFirstManifestWins(t *testing.T) {
	store := newMemory()
	files := map[string]string{"a": "1"}
	var first Snapshot
	store.onPut = onceAt(func() { first = upload(t, store, plant(t, files)) })
	second := upload(t, store, plant(t, files)) // overtaken between its look and its put
	if first.Manifest == "" || second.Manifest != first.Manifest || second.ID != first.ID {
		t.Errorf("the slower upload has %+v, want the manifest of %+v", second, first)
	}
}

func TestCopy(t *testing.T) {
	files := map[string]string{"a": "1", "b/c": "2"}
	from, to := newMemory(), newMemory()
	s := upload(t, from, plant(t, files))
	tmp := t.TempDir()
	copied, err := Copy(t.Context(), from, to, s.ID, s.Manifest, tmp)
	if err != nil {
		t.Fatal(err)
	}
	if copied != s {
		t.Errorf("copied %+v, want %+v", copied, s)
	}
	empty(t, tmp)
	dir := filepath.Join(t.TempDir(), "code")
	if err := Unpack(t.Context(), to, copied.ID, copied.Manifest, dir); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, files)
	again, err := Copy(t.Context(), newMemory(), to, s.ID, s.Manifest, tmp) // the source is not asked
	if err != nil || again.Sent != 0 || again.Manifest != s.Manifest {
		t.Errorf("second copy: %+v, %v, want nothing sent", again, err)
	}
}

func TestCopyRefusesTampering(t *testing.T) {
	from, to := newMemory(), newMemory()
	s := upload(t, from, plant(t, map[string]string{"a": "1"}))
	_, err := Copy(t.Context(), from, to, s.ID, hashOf(nil), t.TempDir())
	wantError(t, err, manifestKey(s.ID), "hash mismatch")
	key, content := from.layer(t)
	content[0] ^= 1
	from.replace(t, key, content)
	_, err = Copy(t.Context(), from, to, s.ID, s.Manifest, t.TempDir())
	wantError(t, err, key, "hash mismatch")
	if puts, _ := to.Count(); puts > 0 {
		t.Errorf("%d objects were put", puts)
	}
}

func TestChanges(t *testing.T) {
	root := plant(t, map[string]string{"same": "1", "touched": "2", "edited": "3", "longer": "4", "gone": "5", "mode": "6", "link": "-> same", "turned": "-> same", "was": "file"})
	tree := scan(t, root)
	if _, err := Upload(t.Context(), newMemory(), tree, t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := Changes(t.Context(), scan(t, root), tree.Files); err != nil || len(got) > 0 {
		t.Fatalf("an untouched tree has changes %v, %v", got, err)
	}
	age(t, root, "touched", "edited")
	write(t, root, "edited", "x")
	write(t, root, "longer", "44")
	write(t, root, "new", "")
	for _, name := range []string{"gone", "turned", "was", "mode"} {
		unlink(t, root, name)
	}
	write(t, root, "mode*", "6")
	write(t, root, "turned", "-> touched")
	write(t, root, "was", "-> same")
	got, err := Changes(t.Context(), scan(t, root), tree.Files)
	want := []Change{{"edited", Modified}, {"gone", Removed}, {"longer", Modified}, {"mode", Modified}, {"new", Added}, {"turned", Modified}, {"was", Modified}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("changes %v, %v, want %v", got, err, want)
	}
}
