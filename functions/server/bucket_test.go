package main

import (
	"strings"
	"testing"
)

func TestBucketNames(t *testing.T) {
	for name, want := range map[string]bool{
		"abc": true, "a.b-c9": true, "0ab": true, strings.Repeat("a", 63): true,
		"": false, "ab": false, strings.Repeat("a", 64): false, "Abc": false, "a_bc": false, "a bc": false, "abc\n": false, "äbc": false,
		"-abc": false, "abc-": false, ".abc": false, "abc.": false,
	} {
		if got := isBucketName(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}
