package task_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/thaw-mcp/thaw/task"
)

func TestUseCheck(t *testing.T) {
	good := task.Use{Call: "c-1", Round: 1, Write: [16]byte{1}, Deadline: time.Unix(1, 0), Expires: time.Unix(2, 0)}
	for _, c := range []struct {
		name string
		edit func(*task.Use)
		want string // "": good
	}{
		{"good", func(*task.Use) {}, ""},
		{"every printable character", func(u *task.Use) { u.Call = "!#~AZaz09+/=_-." }, ""},
		{"longest call", func(u *task.Use) { u.Call = strings.Repeat("x", 256) }, ""},
		{"expires before the deadline", func(u *task.Use) { u.Expires = u.Deadline.Add(-time.Second) }, ""},
		{"no call", func(u *task.Use) { u.Call = "" }, "Use.Call has 0 characters"},
		{"call too long", func(u *task.Use) { u.Call = strings.Repeat("x", 257) }, "Use.Call has 257 characters"},
		{"space", func(u *task.Use) { u.Call = "se cret" }, "Use.Call has byte 0x20 at 2"},
		{"NUL", func(u *task.Use) { u.Call = "secret\x00" }, "Use.Call has byte 0x00 at 6"},
		{"DEL", func(u *task.Use) { u.Call = "secret\x7f" }, "Use.Call has byte 0x7f at 6"},
		{"beyond ASCII", func(u *task.Use) { u.Call = "secreté" }, "Use.Call has byte 0xc3 at 6"},
		{"round zero", func(u *task.Use) { u.Round = 0 }, "Use.Round is 0"},
		{"round below zero", func(u *task.Use) { u.Round = -1 }, "Use.Round is -1"},
		{"no write id", func(u *task.Use) { u.Write = [16]byte{} }, "Use.Write is zero"},
		{"no deadline", func(u *task.Use) { u.Deadline = time.Time{} }, "Use.Deadline is not set"},
		{"no expiry", func(u *task.Use) { u.Expires = time.Time{} }, "Use.Expires is not set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := good
			c.edit(&u)
			err := u.Check()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v, want none", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want one with %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "cret"):
				t.Errorf("%v tells the id", err)
			}
		})
	}
}

func TestKeptResponse(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		kept bool
	}{
		{"nil", nil, false},
		{"empty", []byte{}, false},
		{"one byte", []byte{0}, true},
		{"the longest", make([]byte, task.MaxResponse), true},
		{"one byte more", make([]byte, task.MaxResponse+1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := task.KeptResponse(c.in)
			if c.kept && !bytes.Equal(got, c.in) || !c.kept && got != nil {
				t.Errorf("%d bytes kept of %d", len(got), len(c.in))
			}
		})
	}
}
