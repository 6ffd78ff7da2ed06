package dircloud_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/functions/provision/dircloud"
)

func TestLife(t *testing.T) {
	folder, now := filepath.Join(t.TempDir(), "new"), time.Unix(1_800_000_000, 0)
	// Each call is another process's.
	cloud := func() *dircloud.Cloud { return dircloud.New(folder, func() time.Time { return now }) }
	healthy := func() bool {
		t.Helper()
		ids, err := filepath.Glob(filepath.Join(folder, "net-*"))
		if err != nil || len(ids) != 1 {
			t.Fatalf("networks %q, %v", ids, err)
		}
		ok, err := cloud().Healthy(t.Context(), filepath.Base(ids[0]), []string{"machine-1", "machine-2"})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	network, err := cloud().CreateNetwork(t.Context(), "eu-west1", "token")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := cloud().CreateNetwork(t.Context(), "eu-west1", "token"); err != nil || again != network {
		t.Errorf("the same token gives %q after %q, %v", again, network, err)
	}
	first, err := cloud().StartMachines(t.Context(), network, "small", 2, "other")
	if err != nil || !slices.Equal(first, []string{"machine-1", "machine-2"}) {
		t.Fatalf("%q, %v", first, err)
	}
	now = now.Add(dircloud.Boot - time.Second)
	if again, err := cloud().StartMachines(t.Context(), network, "small", 2, "other"); err != nil || !slices.Equal(again, first) {
		t.Errorf("the same token gives %q after %q, %v", again, first, err)
	}
	if healthy() {
		t.Error("healthy before they have booted")
	}
	now = now.Add(time.Second) // since the first start: the second has started nothing
	if !healthy() {
		t.Error("not healthy after they have booted")
	}
	down := filepath.Join(folder, network, "machine-2.down")
	if err := os.WriteFile(down, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if healthy() {
		t.Error("healthy while one is down")
	}
	if err := os.Remove(down); err != nil {
		t.Fatal(err)
	}
	if !healthy() {
		t.Error("not healthy after it is up again")
	}
	if err := os.Remove(filepath.Join(folder, network, "machine-1.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := cloud().Healthy(t.Context(), network, first); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a machine that is gone is %v", err)
	}
	for range 2 {
		if err := cloud().Destroy(t.Context(), network); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left is %v, %v", left, err)
	}
	if _, err := cloud().StartMachines(t.Context(), network, "small", 1, "late"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("machines in a network that is gone: %v", err)
	}
}

func TestTwoOfOneTokenAtOnce(t *testing.T) {
	cloud := dircloud.New(t.TempDir(), nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			network, err := cloud.CreateNetwork(t.Context(), "eu-west1", "token")
			if err == nil {
				_, err = cloud.StartMachines(t.Context(), network, "small", 20, "other")
			}
			if err == nil {
				_, err = cloud.Healthy(t.Context(), network, []string{"machine-1", "machine-20"})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestRefused(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	cloud := dircloud.New(folder, nil)
	for _, network := range []string{"", ".", "..", "mine", "../" + filepath.Base(folder), "net-0123456789abcdef/.."} {
		if err := cloud.Destroy(t.Context(), network); err == nil {
			t.Errorf("%q was destroyed", network)
		}
		if _, err := cloud.StartMachines(t.Context(), network, "small", 1, "t"); err == nil {
			t.Errorf("machines were started in %q", network)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "mine")); err != nil {
		t.Error(err)
	}
	if err := dircloud.New(filepath.Join(folder, "missing"), nil).Destroy(t.Context(), "net-0123456789abcdef"); err != nil {
		t.Errorf("nothing to destroy: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := cloud.CreateNetwork(ended, "eu-west1", "t"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of ctx: %v", err)
	}
}
