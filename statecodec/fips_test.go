package statecodec

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestFIPSOnly runs tests of this package where the standard library refuses what FIPS
// 140-3 does not allow.
func TestFIPSOnly(t *testing.T) {
	run := func(tests string) (string, error) {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "^("+tests+")$", "-test.v")
		cmd.Env = append(os.Environ(), "GODEBUG=fips140=only")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	tests := []string{"TestVectorOpens", "TestXAESSealsAnewEachTime", "TestSealAndOpen", "TestRecords", "TestCallID", "TestDescribe", "TestGoldenTokens"}
	out, err := run(strings.Join(tests, "|"))
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, test := range tests {
		if !strings.Contains(out, "--- PASS: "+test) {
			t.Errorf("%s did not pass", test)
		}
	}
	// This one seals with a nonce of its own, so it shows that the mode is on.
	if out, err := run("TestXAESVectors"); err == nil || !strings.Contains(out, "not allowed in FIPS 140-only mode") {
		t.Errorf("a nonce of one's own is allowed: %v\n%s", err, out)
	}
}
