// Package debian brings programs of Debian 12 for amd64 into the cache folder, without root
// and without installing them.
package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/thaw-mcp/thaw/e2e/internal/cache"
)

// pin is a version of a package and the SHA-256 of its file.
type pin struct{ version, sum string }

// pinned has what works of each package: the last is the one of Debian's own point release, the
// others are security updates of it, of which Debian keeps the newest.
var pinned = map[string][]pin{
	"nginx": {
		{"1.22.1-9+deb12u11", "4e2778e675c07d0f2d8d3b6f5ff84f6483ade1d82c21c910eb9a2787e1cf1b1a"},
		{"1.22.1-9+deb12u9", "4e7b52f8b31f26d77ffb5c427c41e36223e81b047242ecfa8dc1d7f939734885"},
	},
}

// Install returns the folder in which the files of a package lie below their paths, after
// bringing it there unless it is. What the package depends on has to be on the machine.
func Install(ctx context.Context, name string) (folder string, err error) {
	pins, ok := pinned[name]
	if !ok {
		return "", fmt.Errorf("no package %s is pinned", name)
	}
	folder, err = cache.Folder("e2e-"+name, fmt.Append(nil, pins), func(folder string) error {
		file, err := download(ctx, folder, name, pins)
		if err != nil {
			return err
		}
		if err := run(ctx, folder, "dpkg", "-x", file, folder); err != nil {
			return err
		}
		return os.Remove(file)
	})
	if err != nil {
		return "", fmt.Errorf("install %s of Debian 12: %w", name, err)
	}
	return folder, nil
}

// download gets the first of the versions that Debian has. A machine that has no lists of packages,
// or old ones, gets lists of its own, beside the machine's.
func download(ctx context.Context, folder, name string, pins []pin) (file string, err error) {
	lists, err := os.MkdirTemp("", "apt-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(lists)
	if err := os.Mkdir(filepath.Join(lists, "partial"), 0o755); err != nil {
		return "", err
	}
	own := []string{"-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache=" + lists, "-o", "APT::Sandbox::User="}
	var failures []error
	for _, options := range [][]string{{"-o", "APT::Sandbox::User="}, own} {
		if len(failures) > 0 {
			if err := run(ctx, folder, "apt-get", append(options, "update")...); err != nil {
				failures = append(failures, err)
			}
		}
		for _, p := range pins {
			if err := run(ctx, folder, "apt-get", append(options, "download", name+"="+p.version)...); err != nil {
				failures = append(failures, err)
				continue
			}
			files, err := filepath.Glob(filepath.Join(folder, name+"_*.deb"))
			if err != nil || len(files) != 1 {
				return "", fmt.Errorf("downloaded are %v, %w", files, err)
			}
			return files[0], check(files[0], p.sum)
		}
	}
	return "", fmt.Errorf("none of the pinned versions can be had; a newer one has to be added to internal/debian: %w", errors.Join(failures...))
}

func check(file, want string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want {
		return fmt.Errorf("%s has the SHA-256 %x, pinned is %s", filepath.Base(file), sum, want)
	}
	return nil
}

// run runs a program; what it wrote is in the error.
func run(ctx context.Context, folder, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
