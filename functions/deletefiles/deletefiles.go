// Package deletefiles has the tool delete_files, which asks the user before it deletes.
//
// What the user agrees to is what is deleted and nothing else: the call notes the version
// of every file before it asks, and leaves alone what has changed by the time it deletes. A
// file that is gone by then counts as deleted, so a run that is played again after a crash
// ends as the first would have.
package deletefiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/thaw-mcp/thaw"
)

// In is what delete_files takes. The limits keep what a call notes well below the 24 KB
// that it can keep while it asks.
type In struct {
	Files []string `json:"files" jsonschema:"paths of the files to delete: relative, with forward slashes" minItems:"1" maxItems:"100" minLength:"1" maxLength:"1024"`
}

// Out is what delete_files answers. Every file asked for is in one of the lists, unless
// the user declined: then only Missing can have entries.
type Out struct {
	Deleted  []string `json:"deleted" jsonschema:"the files that the user agreed to delete and that are gone now"`
	Missing  []string `json:"missing,omitempty" jsonschema:"paths at which there was no file"`
	Kept     []Kept   `json:"kept,omitempty" jsonschema:"files that the user agreed to delete and that are still there"`
	Declined bool     `json:"declined,omitempty" jsonschema:"the user did not agree, so nothing was deleted"`
}

// Kept is a file that was not deleted.
type Kept struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// New makes the tool delete_files over files.
func New(files Files) *thaw.Tool {
	return thaw.NewTool("delete_files",
		"Delete files after the user agrees. The user is asked by this tool, so there is no need to ask before calling it. Folders are not deleted.",
		func(ctx context.Context, in In) (Out, error) { return deleteFiles(ctx, files, in) },
		&thaw.ToolOptions{Title: "Delete files", ClosedWorld: true})
}

func deleteFiles(ctx context.Context, files Files, in In) (Out, error) {
	paths, err := cleanPaths(in.Files)
	if err != nil {
		return Out{}, err
	}
	// Noted once: a run after the deletion would find nothing and ask something else.
	versions, err := thaw.Step(ctx, "look", func(ctx context.Context) ([]string, error) {
		return look(ctx, files, paths)
	})
	if err != nil {
		return Out{}, err
	}
	if len(versions) != len(paths) {
		return Out{}, fmt.Errorf("an older version of this tool looked at %d files and this one at %d", len(versions), len(paths))
	}
	var out Out
	var found []File
	for i, path := range paths {
		if versions[i] == "" {
			out.Missing = append(out.Missing, path)
		} else {
			found = append(found, File{path, versions[i]})
		}
	}
	if len(found) == 0 {
		return out, nil
	}
	agreed, err := thaw.Confirm(ctx, "agree", question(found))
	if err != nil {
		return Out{}, err // suspended: the client is asked, and this runs again
	}
	if !agreed {
		out.Declined = true
		return out, nil
	}
	kept, err := thaw.Step(ctx, "delete", func(ctx context.Context) ([]why, error) {
		return remove(ctx, files, found)
	})
	if err != nil {
		return Out{}, err
	}
	for i, file := range found {
		if kept[i] == gone {
			out.Deleted = append(out.Deleted, file.Path)
		} else {
			out.Kept = append(out.Kept, Kept{file.Path, texts[kept[i]]})
		}
	}
	return out, nil
}

// look returns the version of the file at each path, "" where there is none. Only these
// are kept, since paths can be too long for all of them to fit into what a call keeps.
func look(ctx context.Context, files Files, paths []string) ([]string, error) {
	versions := make([]string, len(paths))
	var wrong []string
	for i, found := range files.Look(ctx, paths) {
		switch err := found.Err; {
		case err == nil:
			versions[i] = found.Version
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, ErrNotFile):
			wrong = append(wrong, quote(paths[i])+" is no file")
		case errors.Is(err, ErrOutside):
			wrong = append(wrong, quote(paths[i])+" leads outside")
		default:
			return nil, fmt.Errorf("look at %q: %w", paths[i], err)
		}
	}
	if wrong != nil {
		return nil, thaw.Errorf("nothing was deleted: %s", list(wrong))
	}
	return versions, nil
}

// why is a reason for which a file was kept, in what a call keeps.
type why string

const (
	gone    why = "" // not kept
	changed why = "changed"
	denied  why = "denied"
	failed  why = "failed"
)

// texts are the reasons as the caller reads them; the log has the rest.
var texts = map[why]string{
	changed: "it has changed since the user was asked",
	denied:  "the server may not delete it",
	failed:  "deleting it failed; the server's log says why",
}

// remove says of each file why it was kept. The end of ctx is no reason: the step then
// runs again.
func remove(ctx context.Context, files Files, found []File) ([]why, error) {
	kept := make([]why, len(found))
	for i, err := range files.Delete(ctx, found) {
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrChanged):
			kept[i] = changed
		case errors.Is(err, fs.ErrPermission):
			kept[i] = denied
		default:
			kept[i] = failed
		}
		thaw.Logger(ctx).Warn("file not deleted", "file", found[i].Path, "error", err)
	}
	return kept, nil
}

// list joins what is wrong, or the beginning of it.
func list(wrong []string) string {
	if more := len(wrong) - shown; more > 0 {
		wrong = append(slices.Clone(wrong[:shown]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(wrong, ", ")
}
