package file_test

import (
	"testing"

	"qj/blob"
	"qj/blob/blobtest"
	"qj/blob/file"
)

func TestStore(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store {
		store, err := file.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
}
