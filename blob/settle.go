package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// settle decides what it means that the object exists after a put-if-absent whose answer was lost: nil if
// what is there is body, exist if it is somebody else's.
func (r retrying) settle(ctx context.Context, key string, body io.ReadSeeker, exist error) error {
	size, err := body.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = body.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("put %s: rewind body: %w", key, err)
	}
	stored, err := r.store.Get(ctx, key, 0, size+1)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("put %s: the object came and went", key) // worth another try
	}
	if err != nil {
		return err
	}
	defer stored.Close()
	same, err := equal(stored, body)
	if err != nil {
		return fmt.Errorf("put %s: compare with what is there: %w", key, err)
	}
	if !same {
		return exist
	}
	return nil
}

// equal reads a and b until they differ or end.
func equal(a, b io.Reader) (bool, error) {
	p, q := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(a, p)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return false, err
		}
		m, err := io.ReadFull(b, q)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return false, err
		}
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if n < len(p) {
			return true, nil
		}
	}
}
