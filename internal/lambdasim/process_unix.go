//go:build unix && !linux

package lambdasim

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// waitStopped does not wait: a moment passes until a process that was told to stop has.
func waitStopped(int) {}
