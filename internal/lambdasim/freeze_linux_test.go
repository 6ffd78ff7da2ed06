package lambdasim_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/thaw-mcp/thaw/internal/lambdasim"
)

// Between invocations nothing in a sandbox runs, and then it goes on where it was.
func TestFreeze(t *testing.T) {
	f := start(t, lambdasim.Config{})
	pid := invoke(t, f, order{Do: "count"}).PID
	if state := processState(t, pid); state != "T" {
		t.Errorf("after an invocation the process is %s, want T, stopped", state)
	}
	if again := invoke(t, f, order{Do: "counted"}).PID; again != pid {
		t.Errorf("process %d, want %d", again, pid)
	}
}

// processState is the third field of /proc/PID/stat.
func processState(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))[0]
}
