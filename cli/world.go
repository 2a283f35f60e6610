package cli

import (
	"io"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"time"
)

// World is everything outside that commands touch, so that a test can give them another one.
type World struct {
	Args    []string // with the program's name first
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Environ []string
	Getenv  func(string) string
	Dir     string // the current folder
	Home    string
	User    string // login name
	Host    string
	Now     func() time.Time
}

// System is the world of this process.
func System() World {
	w := World{
		Args: os.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Environ: os.Environ(), Getenv: os.Getenv, Now: time.Now,
	}
	// What cannot be found out stays empty; whoever needs it says so then.
	w.Dir, _ = os.Getwd()
	w.Home, _ = os.UserHomeDir()
	w.Host, _ = os.Hostname()
	w.User = login()
	return w
}

// login asks the environment first: looking a user up can mean a request to a directory server.
func login() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// The user's folders, as the XDG base directory specification places them.
func (w World) configDir() string { return w.userDir("XDG_CONFIG_HOME", ".config") }
func (w World) dataDir() string   { return w.userDir("XDG_DATA_HOME", ".local/share") }
func (w World) stateDir() string  { return w.userDir("XDG_STATE_HOME", ".local/state") }
func (w World) cacheDir() string  { return w.userDir("XDG_CACHE_HOME", ".cache") }

func (w World) userDir(variable, usual string) string {
	base := w.Getenv(variable)
	if base == "" && runtime.GOOS == "windows" {
		base = w.Getenv("LOCALAPPDATA")
	}
	if !filepath.IsAbs(base) { // the specification says to ignore relative ones
		base = filepath.Join(w.Home, filepath.FromSlash(usual))
	}
	return filepath.Join(base, "qj")
}

// isTerminal says whether people read what is written to f.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && file.Name() != os.DevNull
}

// colours says whether stdout takes colours (no-color.org).
func (w World) colours() bool {
	return isTerminal(w.Stdout) && w.Getenv("NO_COLOR") == "" && w.Getenv("TERM") != "dumb"
}
