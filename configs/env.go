package configs

import "strconv"

// pythonBool is what Python's YAML reads as a boolean, as Python's str() prints it.
var pythonBool = map[string]string{
	"true": "True", "True": "True", "TRUE": "True", "yes": "True", "Yes": "True", "YES": "True", "on": "True", "On": "True", "ON": "True",
	"false": "False", "False": "False", "FALSE": "False", "no": "False", "No": "False", "NO": "False", "off": "False", "Off": "False", "OFF": "False",
}

// environment gives variables the values that the seed's tool gave them: Python's str() of the YAML. So
// true is "True" and 0x10 is "16"; text, numbers and what came from ${env:NAME} stay as written. Null sets
// nothing.
func environment(vars map[string]*node, path string) (map[string]string, error) {
	out := make(map[string]string, len(vars))
	for name, n := range vars {
		if n.null() {
			continue
		}
		if err := expect(n, scalar, join(path, name)); err != nil {
			return nil, err
		}
		out[name] = pythonText(n)
	}
	return out, nil
}

func pythonText(n *node) string {
	if n.expanded || n.scalar.Style != 0 { // quoted
		return n.scalar.Value
	}
	if b, ok := pythonBool[n.scalar.Value]; ok {
		return b
	}
	var i int64
	if n.scalar.ShortTag() == "!!int" && n.scalar.Decode(&i) == nil {
		return strconv.FormatInt(i, 10)
	}
	return n.scalar.Value
}
