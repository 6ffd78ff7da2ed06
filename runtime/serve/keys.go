package serve

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/thaw-mcp/thaw/statecodec"
	"github.com/thaw-mcp/thaw/statecodec/filekey"
)

// defaultKeyFile is where a laptop keeps its state keys.
const defaultKeyFile = ".thaw/state.key"

// keysCommand makes, rotates and retires the state keys in a file. Keys of a key service are
// made there.
func (p *program) keysCommand(_ context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: keys takes new, list, rotate or retire\n%s", errUsage, usage)
	}
	var now bool
	rest, err := p.parseFlags("keys "+args[0], args[1:], func(f *flag.FlagSet) {
		if args[0] == "retire" {
			f.BoolVar(&now, "now", false, "")
		}
	})
	if err != nil {
		return err
	}
	if len(rest) > 1 {
		return fmt.Errorf("%w: keys %s takes at most one file\n%s", errUsage, args[0], usage)
	}
	path := p.keyFile(rest)
	switch args[0] {
	case "new":
		info, err := filekey.New(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%s  new key %s; serve with THAW_STATE_KEY=file:%s\n", path, info.KID, path)
	case "list":
		infos, err := filekey.List(path)
		if err != nil {
			return err
		}
		for i, info := range infos {
			fmt.Fprintln(p.out, describeKey(info, i == 0))
		}
	case "rotate":
		info, err := filekey.Rotate(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%s  new key %s seals; the others open what they have sealed. Retire them in %v\n", path, info.KID, statecodec.CallLifetime)
	case "retire":
		age := statecodec.CallLifetime
		if now {
			age = 0
		}
		removed, err := filekey.Retire(path, age, now)
		if err != nil {
			return err
		}
		if len(removed) == 0 {
			fmt.Fprintf(p.out, "%s  nothing to retire: no key was replaced %v ago; -now retires all that were replaced, and refuses the states they sealed\n", path, statecodec.CallLifetime)
		}
		for _, info := range removed {
			fmt.Fprintf(p.out, "%s  retired %s\n", path, info.KID)
		}
	default:
		return fmt.Errorf("%w: keys has no %q; it has new, list, rotate and retire\n%s", errUsage, args[0], usage)
	}
	return nil
}

// keyFile is the file that was named, or the one that the server uses.
func (p *program) keyFile(args []string) string {
	if len(args) == 1 {
		return strings.TrimPrefix(args[0], "file:")
	}
	for _, item := range commaList(p.getenv("THAW_STATE_KEY")) {
		if path, ok := strings.CutPrefix(item, "file:"); ok {
			return path
		}
	}
	return defaultKeyFile
}

func describeKey(info filekey.Info, seals bool) string {
	text := info.KID + "  made " + info.Created.UTC().Format(time.RFC3339)
	if seals {
		return text + ", seals and opens"
	}
	return text + ", opens; replaced " + info.Replaced.UTC().Format(time.RFC3339)
}
