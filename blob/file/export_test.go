package file

import (
	"os"
	"syscall"
)

// WithoutLinks makes s behave as on a file system that has no hard links.
func (s *Store) WithoutLinks() *Store {
	s.link = func(oldname, newname string) error {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.EPERM}
	}
	return s
}
