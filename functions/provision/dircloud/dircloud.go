// Package dircloud keeps the environments of provision_environment as files in a folder of
// this machine, or of a volume that is mounted here. It is for trying the tool without a
// cloud: what it keeps is a record, and no machine runs.
//
// A network is a folder with the file network.json, a machine a file such as machine-1.json
// in it. A machine works from Boot after its start on, unless there is a file of its name that
// ends in .down instead of .json: make one by hand to see the tool wait.
package dircloud

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"time"

	"github.com/thaw-mcp/thaw/functions/provision"
)

// Boot is how long a machine takes until it works.
const Boot = 3 * time.Second

// Cloud is a folder. Any number of processes may share it.
type Cloud struct {
	folder string
	now    func() time.Time
}

var _ provision.Cloud = (*Cloud)(nil)

// New names a folder. It does no I/O: the folder is made with its first network. now is the
// clock; nil is time.Now.
func New(folder string, now func() time.Time) *Cloud {
	if now == nil {
		now = time.Now
	}
	return &Cloud{folder, now}
}

type networkFile struct {
	Region  string    `json:"region"`
	Created time.Time `json:"created"`
}

type machineFile struct {
	Size    string    `json:"size"`
	Started time.Time `json:"started"`
}

// CreateNetwork implements provision.Cloud.
func (c *Cloud) CreateNetwork(ctx context.Context, region, token string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(c.folder)
	if err != nil {
		return "", err
	}
	defer root.Close()
	digest := sha256.Sum256([]byte(token))
	network := fmt.Sprintf("net-%x", digest[:8])
	if err := root.Mkdir(network, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return network, writeOnce(root, path.Join(network, "network.json"), networkFile{region, c.now().UTC()})
}

// StartMachines implements provision.Cloud. A network has one set of machines, so token
// is not needed to find it again.
func (c *Cloud) StartMachines(ctx context.Context, network, size string, n int, _ string) ([]string, error) {
	root, err := c.open(ctx, network)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	machines := make([]string, n)
	for i := range machines {
		machines[i] = fmt.Sprintf("machine-%d", i+1)
		if err := writeOnce(root, machines[i]+".json", machineFile{size, c.now().UTC()}); err != nil {
			return nil, err
		}
	}
	return machines, nil
}

// Healthy implements provision.Cloud. A machine without its file was stopped by somebody,
// which is an error.
func (c *Cloud) Healthy(ctx context.Context, network string, machines []string) (bool, error) {
	root, err := c.open(ctx, network)
	if err != nil {
		return false, err
	}
	defer root.Close()
	healthy := true
	for _, machine := range machines {
		text, err := root.ReadFile(machine + ".json")
		if err != nil {
			return false, err
		}
		var m machineFile
		if err := json.Unmarshal(text, &m); err != nil {
			return false, fmt.Errorf("%s of %s: %w", machine, network, err)
		}
		_, err = root.Lstat(machine + ".down")
		down := err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		healthy = healthy && !down && c.now().Sub(m.Started) >= Boot
	}
	return healthy, nil
}

// Destroy implements provision.Cloud.
func (c *Cloud) Destroy(ctx context.Context, network string) error {
	if err := check(ctx, network); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(network)
}

// open opens the folder of a network that has to exist.
func (c *Cloud) open(ctx context.Context, network string) (*os.Root, error) {
	if err := check(ctx, network); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(c.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenRoot(network)
}

var networkID = regexp.MustCompile(`^net-[0-9a-f]{16}$`)

func check(ctx context.Context, network string) error {
	if !networkID.MatchString(network) {
		return fmt.Errorf("%q is no id of a network", network)
	}
	return ctx.Err()
}

// writeOnce makes a file whole or not at all; one that is there stays as it is.
func writeOnce(root *os.Root, name string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if _, err := root.Lstat(name); err == nil {
		return nil
	}
	part := name + "." + rand.Text() // left behind by who dies here, and gone with its network
	if err := root.WriteFile(part, append(text, '\n'), 0o644); err != nil {
		return err
	}
	defer root.Remove(part)
	if err := root.Link(part, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
