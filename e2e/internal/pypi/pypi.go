// Package pypi brings programs of the Python Package Index onto the machine, each into a
// virtual environment of its own.
package pypi

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/thaw-mcp/thaw/e2e/internal/cache"
)

// pinned has a file for each program: every package that it needs, with version and hashes.
// What makes one is
//
//	echo 'ministack==1.5.33' | uv pip compile --universal --python-version 3.10 --generate-hashes -
//
//go:embed *.txt
var pinned embed.FS

// Install returns the Python that knows the program's packages, after installing them
// unless they are. Start a program as a module (python -m NAME): its own starter holds the
// path at which it was installed, and the environment was moved since.
func Install(ctx context.Context, program string) (python string, err error) {
	requirements, err := pinned.ReadFile(program + ".txt")
	if err != nil {
		return "", fmt.Errorf("no program of this module: %w", err)
	}
	// An environment is for one Python alone.
	version, err := output(exec.CommandContext(ctx, "python3", "-c", "import sys; print(sys.executable, sys.version)"))
	if err != nil {
		return "", err
	}
	folder, err := cache.Folder("e2e-"+program, append(version, requirements...), func(folder string) error {
		if _, err := output(exec.CommandContext(ctx, "python3", "-m", "venv", folder)); err != nil {
			return err
		}
		pip := exec.CommandContext(ctx, python3(folder), "-m", "pip", "install", "--quiet", "--no-input",
			"--disable-pip-version-check", "--require-hashes", "--no-deps", // the file has them all
			"--requirement", "/dev/stdin")
		pip.Stdin = bytes.NewReader(requirements)
		_, err := output(pip)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("install %s: %w", program, err)
	}
	return python3(folder), nil
}

func python3(folder string) string { return filepath.Join(folder, "bin", "python3") }

// output runs cmd; what it wrote is in the error.
func output(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return out, nil
}
