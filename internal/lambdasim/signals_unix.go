//go:build unix

package lambdasim

import "syscall"

// Processes lead a group of their own, so that what they start is stopped and ended with them.

// freeze stops the process until thaw.
func (s *sandbox) freeze() {
	s.signal(syscall.SIGSTOP)
	waitStopped(s.cmd.Process.Pid)
}

// thaw lets it go on. One that was not stopped does not notice.
func (s *sandbox) thaw() { s.signal(syscall.SIGCONT) }

// kill ends it, stopped or not.
func (s *sandbox) kill() { s.signal(syscall.SIGKILL) }

func (s *sandbox) signal(n syscall.Signal) {
	select {
	case <-s.ended: // its number may be another's by now
	default:
		_ = syscall.Kill(-s.cmd.Process.Pid, n) // one that has just ended is no error
	}
}
