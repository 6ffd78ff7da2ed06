//go:build !unix

package lambdasim

import "syscall"

// Here no process can be stopped: what a program leaves running goes on.

func attributes() *syscall.SysProcAttr { return nil }

func (s *sandbox) freeze() {}
func (s *sandbox) thaw()   {}
func (s *sandbox) kill()   { _ = s.cmd.Process.Kill() } // one that has ended is no error
