package configs

import (
	"path"
	"strings"
)

// IsOwnFile says whether a slash-separated path is, by its name and place, a configuration or account file
// of qj or of the tools before it, in whatever project below the folder where one stands: they may hold
// keys, and are part of no snapshot.
func IsOwnFile(name string) bool {
	dir, base := path.Split(name)
	dir = "/" + strings.TrimSuffix(dir, "/")
	switch {
	case base == fileName:
		return true
	case strings.HasSuffix(dir, "/aux_data/configs"):
		return strings.HasSuffix(base, "_account.yaml") || base == "philly_vc.yaml" || base == "multi_philly_vc.yaml"
	case strings.HasSuffix(dir, "/aux_data/aml"):
		return base == "config.json" || strings.HasSuffix(base, ".yaml")
	}
	return false
}
