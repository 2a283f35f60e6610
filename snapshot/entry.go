package snapshot

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"time"
	"unicode/utf8"
)

const (
	utf8Name     = 1 << 11 // flag: the name is UTF-8
	timeExtraTag = 0x5455  // Info-ZIP's "UT": seconds since 1970, which zip's own local time lacks
)

// newEntry describes f as an entry of a layer. The zip's directory doubles as the layer's file list: the
// content hash is the entry's comment.
func newEntry(f File) *zip.FileHeader {
	h := &zip.FileHeader{Name: f.Path, Comment: f.SHA256, Method: zip.Deflate}
	h.SetMode(f.Mode & (fs.ModePerm | fs.ModeType))
	if utf8.ValidString(f.Path) {
		h.Flags |= utf8Name
	}
	seconds := min(max(f.ModTime.Unix(), 0), math.MaxInt32)
	//lint:ignore SA1019 CreateRaw writes these fields as they are and does not look at Modified.
	h.ModifiedDate, h.ModifiedTime = dosTime(time.Unix(seconds, 0).UTC())
	h.Extra = binary.LittleEndian.AppendUint16(nil, timeExtraTag)
	h.Extra = append(h.Extra, 5, 0, 1) // length, and which times follow: the modification's
	h.Extra = binary.LittleEndian.AppendUint32(h.Extra, uint32(seconds))
	return h
}

// dosTime is MS-DOS's date and time, which begin in 1980 and count two seconds.
func dosTime(t time.Time) (date, clock uint16) {
	if t.Year() < 1980 {
		return 1<<5 | 1, 0
	}
	date = uint16((t.Year()-1980)<<9 | int(t.Month())<<5 | t.Day())
	clock = uint16(t.Hour()<<11 | t.Minute()<<5 | t.Second()/2)
	return date, clock
}

// checkEntry refuses what no layer of ours holds and what could write elsewhere.
func checkEntry(h *zip.FileHeader) error {
	if path.Clean(h.Name) != h.Name || h.Name == "." || !filepath.IsLocal(filepath.FromSlash(h.Name)) {
		return fmt.Errorf("entry %q leads out of the tree", h.Name)
	}
	if t := h.Mode().Type(); t != 0 && t != fs.ModeSymlink {
		return fmt.Errorf("entry %q is neither a file nor a link", h.Name)
	}
	return nil
}
