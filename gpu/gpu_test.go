package gpu

import (
	"maps"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	list, err := ParseList([]byte("0, GPU-a\n1, GPU-b\n"))
	if err != nil || !slices.Equal(list, []GPU{{"0", "GPU-a"}, {"1", "GPU-b"}}) {
		t.Errorf("list: %v, %v", list, err)
	}
	use, err := ParseUse([]byte("GPU-b, 17\n"))
	if err != nil || !maps.Equal(use, map[string]string{"GPU-b": "17"}) {
		t.Errorf("use: %v, %v", use, err)
	}
	if use, err := ParseUse(nil); err != nil || len(use) != 0 {
		t.Errorf("no use: %v, %v", use, err)
	}
	for _, bad := range []string{"NVIDIA-SMI has failed\n", "0, GPU-a, more\n", "\"0\n"} {
		if list, err := ParseList([]byte(bad)); err == nil {
			t.Errorf("%q is %v", bad, list)
		}
	}
}

func TestVisible(t *testing.T) {
	all := []GPU{{"0", "GPU-a"}, {"1", "GPU-b"}, {"2", "GPU-c"}}
	for _, test := range []struct {
		environ []string
		want    []GPU
	}{
		{nil, all},
		{[]string{"PATH=/bin"}, all},
		{[]string{"CUDA_VISIBLE_DEVICES=2,GPU-a"}, []GPU{all[0], all[2]}},
		{[]string{"CUDA_VISIBLE_DEVICES="}, nil},
		{[]string{"CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1"}, all[1:2]},
		{[]string{"CUDA_VISIBLE_DEVICES=-1"}, nil},
	} {
		if got := Visible(all, test.environ); !slices.Equal(got, test.want) {
			t.Errorf("%q leaves %v, want %v", test.environ, got, test.want)
		}
	}
	if all[0].Index != "0" || len(all) != 3 {
		t.Error("the list itself was changed")
	}
}
