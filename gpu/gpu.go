// Package gpu reads what nvidia-smi says of a machine. It runs nothing itself.
package gpu

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
)

// GPU is one of the machine's.
type GPU struct {
	Index string // in PCI order
	UUID  string
}

// ListCommand asks nvidia-smi for what ParseList reads.
func ListCommand() []string {
	return []string{"nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"}
}

// ParseList reads the answer to ListCommand.
func ParseList(out []byte) ([]GPU, error) {
	rows, err := pairs(out)
	if err != nil {
		return nil, fmt.Errorf("list GPUs: %w", err)
	}
	list := make([]GPU, len(rows))
	for i, row := range rows {
		list[i] = GPU{Index: row[0], UUID: row[1]}
	}
	return list, nil
}

// UseCommand asks nvidia-smi for what ParseUse reads.
func UseCommand() []string {
	return []string{"nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader"}
}

// ParseUse reads the answer to UseCommand: a process that computes on each GPU in use, by its UUID.
func ParseUse(out []byte) (map[string]string, error) {
	rows, err := pairs(out)
	if err != nil {
		return nil, fmt.Errorf("list GPU processes: %w", err)
	}
	use := map[string]string{}
	for _, row := range rows {
		use[row[0]] = row[1]
	}
	return use, nil
}

// Visible are the GPUs that an environment's CUDA_VISIBLE_DEVICES leaves: whoever set it means that the
// others are not to be touched. Set and empty, it leaves none.
func Visible(list []GPU, environ []string) []GPU {
	for _, kv := range slices.Backward(environ) { // the last one counts
		if value, ok := strings.CutPrefix(kv, "CUDA_VISIBLE_DEVICES="); ok {
			allowed := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
			return slices.DeleteFunc(slices.Clone(list), func(g GPU) bool {
				return !slices.Contains(allowed, g.Index) && !slices.Contains(allowed, g.UUID)
			})
		}
	}
	return list
}

// pairs reads rows of two fields.
func pairs(out []byte) ([][]string, error) {
	r := csv.NewReader(bytes.NewReader(out))
	r.FieldsPerRecord = 2
	r.TrimLeadingSpace = true
	return r.ReadAll()
}
