package configs

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// decoder fills Go values from nodes by the `yaml` tags of structs, and never ignores a key. A string
// field tagged `config:"path"` is made absolute: ~, or relative to where it was written.
type decoder struct {
	home     string
	warnings []string
	also     []string // keys that an unknown one may have meant, besides the struct's own
}

func (d *decoder) decode(n *node, into reflect.Value, path string) error {
	if into.Type() == reflect.TypeFor[*node]() {
		into.Set(reflect.ValueOf(n))
		return nil
	}
	if n.null() {
		return nil
	}
	if u, ok := into.Addr().Interface().(yaml.Unmarshaler); ok {
		if err := u.UnmarshalYAML(n.yaml()); err != nil {
			return problemf(n.at, path, "%s", oneLine(err))
		}
		return nil
	}
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return d.text(n, u, path)
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		return d.decode(n, into.Elem(), path)
	case reflect.Struct:
		return d.structure(n, into, path)
	case reflect.Map:
		return d.table(n, into, path)
	case reflect.Slice:
		return d.list(n, into, path)
	case reflect.Interface:
		return d.library(n, into, path)
	}
	if err := expect(n, scalar, path); err != nil {
		return err
	}
	return d.library(n, into, path)
}

func expect(n *node, want kind, path string) error {
	if n.kind != want {
		return problemf(n.at, path, "want %v, not %v", want, n.kind)
	}
	return nil
}

func (d *decoder) text(n *node, into encoding.TextUnmarshaler, path string) error {
	if err := expect(n, scalar, path); err != nil {
		return err
	}
	if err := into.UnmarshalText([]byte(n.scalar.Value)); err != nil {
		return problemf(n.at, path, "%s", oneLine(err))
	}
	return nil
}

func (d *decoder) structure(n *node, into reflect.Value, path string) error {
	if err := expect(n, mapping, path); err != nil {
		return err
	}
	known := fieldsOf(into)
	for _, key := range n.order {
		value := n.fields[key]
		field, ok := known[key]
		if !ok {
			if err := d.unknown(value.at, path, key, known); err != nil {
				return err
			}
			continue
		}
		if err := d.decode(value, field.value, join(path, key)); err != nil {
			return err
		}
		if field.isPath && field.value.Kind() == reflect.String && field.value.String() != "" {
			field.value.SetString(absolute(value.at.src.dir, d.home, field.value.String()))
		}
	}
	return nil
}

// unknown is an error, but for keys of the seed's files that are no misspelling: those took any key.
func (d *decoder) unknown(at place, path, key string, known map[string]field) error {
	candidates := slices.Clone(d.also)
	for name := range known {
		candidates = append(candidates, name)
	}
	slices.Sort(candidates)
	if at.src.seed && Nearest(key, candidates) == "" {
		d.warnings = append(d.warnings, problemf(at, path, "unknown key %q is ignored", key).Error())
		return nil
	}
	return problemf(at, path, "unknown key %q%s", key, didYouMean(key, candidates))
}

func (d *decoder) table(n *node, into reflect.Value, path string) error {
	if err := expect(n, mapping, path); err != nil {
		return err
	}
	if into.Type().Key().Kind() != reflect.String {
		return d.library(n, into, path)
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, key := range n.order {
		value := reflect.New(into.Type().Elem()).Elem()
		if err := d.decode(n.fields[key], value, join(path, key)); err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(key).Convert(into.Type().Key()), value)
	}
	return nil
}

func (d *decoder) list(n *node, into reflect.Value, path string) error {
	if err := expect(n, list, path); err != nil {
		return err
	}
	into.Set(reflect.MakeSlice(into.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		if err := d.decode(item, into.Index(i), join(path, fmt.Sprint(i))); err != nil {
			return err
		}
	}
	return nil
}

// library leaves scalars and free-form values to the YAML library, with an error of our own: its message
// has no file, several lines, and shows the value, which may be a secret.
func (d *decoder) library(n *node, into reflect.Value, path string) error {
	// The library cuts 4.7 to 4.
	whole := into.CanInt() || into.CanUint()
	if whole && n.scalar.ShortTag() == "!!float" || n.yaml().Decode(into.Addr().Interface()) != nil {
		return problemf(n.at, path, "want %s", wanted(into.Type()))
	}
	return nil
}

func wanted(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "a duration (like 90s, 10m or 4h)"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return "a whole number"
	case t.Kind() == reflect.String:
		return "text"
	}
	return "a value of another kind"
}

type field struct {
	value  reflect.Value
	isPath bool
}

// fieldsOf finds the keys of a struct as the YAML library would, inlined structs included.
func fieldsOf(s reflect.Value) map[string]field {
	fields := map[string]field{}
	for i := range s.NumField() {
		f := s.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
			continue
		case options == "inline":
			for key, inner := range fieldsOf(s.Field(i)) {
				fields[key] = inner
			}
			continue
		case name == "":
			name = strings.ToLower(f.Name)
		}
		fields[name] = field{s.Field(i), f.Tag.Get("config") == "path"}
	}
	return fields
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
