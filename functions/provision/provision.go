// Package provision has the tool provision_environment, which builds a test environment: a
// call that begins in one request and lasts for as long as building does.
//
// It shows the parts of a long call together. The region is mirrored in a header, so that a
// gateway can send the call to the right place unread. A form asks how much to build while
// the client waits. From there on the call is a task, where the client knows tasks: it tells
// how far it is, asks for approval before anything costs, sleeps until the machines work, and
// goes on elsewhere if its process dies. A client that does not know tasks gets the same from
// the same handler, within the time that its requests have.
package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/thaw-mcp/thaw"
)

// In is what provision_environment takes.
type In struct {
	Region string `json:"region" header:"Region" enum:"us-west1,eu-west1" jsonschema:"where to build"`
}

// Out is what provision_environment answers.
type Out struct {
	Network  string   `json:"network" jsonschema:"id of the network"`
	Machines []string `json:"machines" jsonschema:"ids of the machines in it"`
	Healthy  bool     `json:"healthy" jsonschema:"whether all machines work; false: they were started, and the call had no time to wait for them"`
}

// plan is the form.
type plan struct {
	Size  string `json:"size" enum:"small,large" jsonschema:"of each machine"`
	Count int    `json:"count" minimum:"1" maximum:"20" jsonschema:"how many machines"`
}

const (
	// checkEvery is how often machines are asked whether they work.
	checkEvery = 15 * time.Second
	// destroyTries and destroyPause are for a clean-up that fails.
	destroyTries = 5
	destroyPause = time.Second
)

// New makes the tool provision_environment over cloud. scopes are what its callers need, all
// of them; where machines cost something there should be one, such as "env:write".
//
// What was made goes away again when the approval is refused, when a step fails, and when the
// task is cancelled.
func New(cloud Cloud, scopes ...string) *thaw.Tool {
	return thaw.NewTool("provision_environment",
		"Build a test environment: a network with machines in it. The user is asked how many machines, and again before they start, so there is no need to ask before calling it.",
		func(ctx context.Context, in In) (Out, error) { return build(ctx, cloud, in) },
		&thaw.ToolOptions{Title: "Provision an environment", NonDestructive: true, Scopes: scopes, TaskTTL: 24 * time.Hour})
}

func build(ctx context.Context, cloud Cloud, in In) (Out, error) {
	wanted, err := thaw.Elicit(ctx, "plan", "What is to be built in "+in.Region+"?", plan{Size: "small", Count: 2})
	if errors.Is(err, thaw.ErrDeclined) || errors.Is(err, thaw.ErrDismissed) {
		return Out{}, thaw.Errorf("the user gave no plan; nothing was built")
	}
	if err != nil {
		return Out{}, err
	}
	if err := thaw.ContinueAsTask(ctx); err != nil {
		return Out{}, err // the client has a task now, and this runs again on a worker
	}

	thaw.Progress(ctx, 1, 4, "creating the network")
	var out Out
	out.Network, err = thaw.Step(ctx, "network", func(ctx context.Context) (string, error) {
		return cloud.CreateNetwork(ctx, in.Region, thaw.IdempotencyKey(ctx))
	})
	if err != nil {
		return Out{}, err
	}
	thaw.Progress(ctx, 2, 4, "waiting for approval")
	approved, err := thaw.Confirm(ctx, "approve",
		fmt.Sprintf("Start machines in %s?\nsize: %s, number: %d, network: %s", in.Region, wanted.Size, wanted.Count, out.Network))
	switch {
	case err != nil:
		return Out{}, undo(ctx, cloud, out.Network, "the approval was not given", err)
	case !approved:
		return Out{}, undo(ctx, cloud, out.Network, "the user did not approve", thaw.ErrDeclined)
	}
	thaw.Progress(ctx, 3, 4, "starting the machines")
	out.Machines, err = thaw.Step(ctx, "machines", func(ctx context.Context) ([]string, error) {
		return cloud.StartMachines(ctx, out.Network, wanted.Size, wanted.Count, thaw.IdempotencyKey(ctx))
	})
	if err != nil {
		return Out{}, undo(ctx, cloud, out.Network, "the machines did not start", err)
	}
	thaw.Progress(ctx, 4, 4, "waiting until the machines are healthy")
	err = thaw.WaitUntil(ctx, "healthy", checkEvery, func(ctx context.Context) (bool, error) {
		return cloud.Healthy(ctx, out.Network, out.Machines)
	})
	if errors.Is(err, thaw.ErrUnsupported) {
		return out, nil // a request has no time for this, and the machines come up without it
	}
	if err != nil {
		return Out{}, undo(ctx, cloud, out.Network, "the machines do not work", err)
	}
	out.Healthy = true
	return out, nil
}

// undo removes the network of a call that ends in why, and is the error to return: what and
// why for the log, what for the caller. A call that only pauses, or whose run is over, keeps
// what it has.
func undo(ctx context.Context, cloud Cloud, network, what string, why error) error {
	cancelled := errors.Is(why, thaw.ErrCancelled) // ctx has ended, and steps run all the same
	if errors.Is(why, thaw.ErrSuspended) || errors.Is(why, thaw.ErrUnsupported) || ctx.Err() != nil && !cancelled {
		return why
	}
	err := thaw.Do(ctx, "destroy", func(ctx context.Context) error {
		return thaw.RetryAfter(cloud.Destroy(ctx, network), destroyPause, destroyTries)
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		return thaw.WrapErrorf(errors.Join(why, err), "%s; the network %s could not be removed and is still there", what, network)
	}
	return thaw.WrapErrorf(why, "%s; the network was removed", what)
}
