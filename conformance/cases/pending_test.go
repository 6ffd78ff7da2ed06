package cases

import "testing"

// pending is what waits for a later issue, which takes its entries away. An entry that
// cases.yaml no longer has fails the test.
var pending = []pendingPart{
	{category: "tasks", issue: "tasks"},

	{id: "B-13", part: "also through task storage", issue: "tasks"},
	{id: "B-14", part: "in task records", issue: "tasks"},
	{id: "B-26", issue: "tasks"},
	{id: "B-66", part: "A task that was created stays alive.", issue: "tasks"},
}

// pendingPart is a category, a case, or a part of a case: the name of something it tries,
// a line that it expects, or words of what is right.
type pendingPart struct {
	category, id, part string
	issue              string
}

// waits reports whether all of c waits.
func waits(c *failure) bool {
	for _, p := range pending {
		if p.category == c.Category || p.id == c.ID && p.part == "" {
			return true
		}
	}
	return false
}

// waitingParts are the parts of c that wait.
func waitingParts(c *failure) (parts []string) {
	for _, p := range pending {
		if p.id == c.ID && p.part != "" {
			parts = append(parts, p.part)
		}
	}
	return parts
}

func TestPendingExists(t *testing.T) {
	d := loadFile(t)
	for _, p := range pending {
		if p.issue == "" {
			t.Errorf("%+v waits for nothing", p)
		}
		found := false
		for _, c := range d.Cases {
			if p.category != "" {
				found = found || p.category == c.Category
			} else if p.id == c.ID {
				found = p.part == "" || c.has(p.part)
			}
		}
		if !found {
			t.Errorf("cases.yaml has no %+v", p)
		}
	}
}
