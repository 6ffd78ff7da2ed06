// Package npm brings the pinned npm packages of this module onto the machine and runs
// scripts with them.
package npm

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"

	"github.com/thaw-mcp/thaw/e2e/internal/cache"
)

//go:embed package.json package-lock.json .npmrc
var pinned embed.FS

// Install returns the folder that holds the packages of the lock file, after putting
// them there unless they are.
func Install(ctx context.Context) (string, error) {
	lock, err := pinned.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	return cache.Folder("e2e-ts", lock, func(folder string) error {
		if err := os.CopyFS(folder, pinned); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--loglevel=error")
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("npm ci: %w\n%s", err, out)
		}
		return nil
	})
}

// Run runs a CommonJS script with Node and returns its standard output. The script
// resolves packages in folder.
func Run(ctx context.Context, folder string, script []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "node", append([]string{"-"}, args...)...)
	cmd.Dir = folder
	cmd.Stdin = bytes.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("node: %w\n%s\n%s", err, stderr.Bytes(), out)
	}
	return out, nil
}

// Command is a process of Node that runs an ES module, which resolves packages in folder
// and finds args from process.argv[1] on.
func Command(folder string, module []byte, args ...string) *exec.Cmd {
	cmd := exec.Command("node", append([]string{"--input-type=module", "--eval", string(module), "--"}, args...)...)
	cmd.Dir = folder
	return cmd
}
