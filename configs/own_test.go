package configs

import "testing"

func TestIsOwnFile(t *testing.T) {
	for name, want := range map[string]bool{
		"qj.yaml": true, "a/b/qj.yaml": true, "my_qj.yaml": false, "qj.yaml/x": false,
		"aux_data/configs/vig_account.yaml": true, "n/aux_data/configs/philly_vc.yaml": true,
		"aux_data/configs/multi_philly_vc.yaml": true, "aux_data/configs/coco.yaml": false, "xaux_data/configs/vig_account.yaml": false,
		"aux_data/aml/config.json": true, "aux_data/aml/aml.yaml": true, "n/aux_data/aml/v100.yaml": true, "aux_data/aml/notes.txt": false,
		"aux_data/aml/deep/x.yaml": false, "": false,
	} {
		if got := IsOwnFile(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
