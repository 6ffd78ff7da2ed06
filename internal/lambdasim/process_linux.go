package lambdasim

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// attributes end a sandbox with the process that runs it: one that is stopped would stay for ever.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// waitStopped returns when a process that was told to stop has stopped, or ended.
func waitStopped(pid int) {
	look := time.NewTicker(100 * time.Microsecond)
	defer look.Stop()
	for ; ; <-look.C {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, ok := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" ")) // the name may hold anything
		if err != nil || !ok || len(state) == 0 || bytes.IndexByte([]byte("TtZX"), state[0]) >= 0 {
			return
		}
	}
}
