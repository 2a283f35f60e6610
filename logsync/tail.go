package logsync

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	tailBlock = 64 << 10

	// tailMost bounds what the last lines may hold: progress bars write megabytes with no newline.
	tailMost = 4 << 20
)

// TailLines returns the last n lines of a file, without reading what comes before them. Of lines that
// are longer than 4 MiB together it returns the last 4 MiB.
func TailLines(path string, n int) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the last lines: %w", err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("read the last lines: %w", err)
	}
	var blocks [][]byte // from the end backwards
	newlines := 0
	for end := size; end > 0 && size-end < tailMost; {
		block := make([]byte, min(tailBlock, end))
		end -= int64(len(block))
		if _, err := f.ReadAt(block, end); err != nil {
			return nil, fmt.Errorf("read the last lines: %w", err)
		}
		blocks = append(blocks, block)
		if newlines += bytes.Count(block, []byte("\n")); newlines > n {
			break // n lines and the newline before them, and one more if the last line is complete
		}
	}
	slices.Reverse(blocks)
	return lastLines(slices.Concat(blocks...), n), nil
}

// lastLines cuts text down to its last n lines; a newline at the end belongs to the last of them.
func lastLines(text []byte, n int) []byte {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for ; n > 0; n-- {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}
