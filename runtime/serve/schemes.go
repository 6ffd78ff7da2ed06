package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw/runtime/host"
	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/task"
)

// environment is what settings are read in: the place, and what the binary's kits can open.
type environment struct {
	at       host.Host
	stores   []task.StoreScheme
	dispatch []task.DispatchScheme
	keys     []statecodec.KeyScheme
	defaults map[string]string
}

// environmentOf merges kits; of several the first kit's default holds.
func environmentOf(at host.Host, kits []Kit) *environment {
	e := &environment{at: at, defaults: map[string]string{}}
	for _, k := range slices.Backward(kits) {
		maps.Copy(e.defaults, k.Defaults)
	}
	for _, k := range kits {
		e.stores = append(e.stores, k.Stores...)
		e.dispatch = append(e.dispatch, k.Dispatch...)
		e.keys = append(e.keys, k.StateKeys...)
	}
	return e
}

// value is what a setting says, or the default that a kit has for it.
func (e *environment) value(getenv func(string) string, name string) string {
	value := strings.TrimSpace(getenv(name))
	if value == "" && !e.at.Ephemeral {
		value = e.defaults[name]
	}
	return value
}

// allows is what a value may be in this binary.
func (s *setting) allows(e *environment) string {
	if s.schemes == nil {
		return s.allowed
	}
	schemes := s.schemes(e)
	if len(schemes) == 0 {
		return s.allowed + " (no kit of this program opens anything else)"
	}
	return s.allowed + "; " + strings.Join(schemes, "; ")
}

func storeSchemes(e *environment) (usages []string) {
	for _, s := range e.stores {
		usages = append(usages, s.Usage)
	}
	return usages
}

func keySchemes(e *environment) (usages []string) {
	for _, s := range e.keys {
		usages = append(usages, s.Usage)
	}
	return usages
}

var errNoScheme = errors.New("this program has no such scheme")

func openStore(o *Options, value string, e *environment) error {
	if value == "none" {
		return nil
	}
	name, rest, _ := strings.Cut(value, ":")
	i := slices.IndexFunc(e.stores, func(s task.StoreScheme) bool { return s.Name == name })
	if i < 0 {
		return errNoScheme
	}
	store, err := e.stores[i].Open(context.Background(), rest)
	if err != nil {
		return err
	}
	o.Store = store
	return nil
}

// isPrivate reports whether other processes do not see what is in a store.
func isPrivate(s task.Store) bool {
	_, is := s.(task.Private)
	return is
}

// openStateKeys opens every key of the list. A key that is missing is made only where it
// stays: elsewhere every instance would make one of its own.
func openStateKeys(o *Options, value string, e *environment) error {
	if value == "none" {
		return nil
	}
	errs := []error{filled(value)}
	for _, item := range commaList(value) {
		name, rest, _ := strings.Cut(item, ":")
		i := slices.IndexFunc(e.keys, func(s statecodec.KeyScheme) bool { return s.Name == name })
		if i < 0 {
			errs = append(errs, errNoScheme)
			continue
		}
		open := e.keys[i].Open
		if e.keys[i].Create != nil && !e.at.Ephemeral {
			open = e.keys[i].Create
		}
		key, err := open(context.Background(), rest)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		o.StateKeys = append(o.StateKeys, key)
	}
	return errors.Join(errs...)
}
