package call

import "testing"

// TestContenders: whoever is measured does the work.
func TestContenders(t *testing.T) {
	all, err := Contenders()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func BenchmarkCall(b *testing.B) {
	all, err := Contenders()
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range all {
		b.Run(c.Name, c.Bench)
	}
}
