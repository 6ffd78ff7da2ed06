package call

import (
	"path/filepath"
	"runtime"
	"strconv"
)

// Site is a place in an author's code. Taking one costs little; it is resolved when it is
// printed.
type Site uintptr

// Here is the place skip callers above the caller of Here.
func Here(skip int) Site {
	var pc [1]uintptr
	runtime.Callers(skip+2, pc[:])
	return Site(pc[0])
}

// String is the file, with its folder, and the line.
func (s Site) String() string {
	if s == 0 {
		return "unknown place"
	}
	frame, _ := runtime.CallersFrames([]uintptr{uintptr(s)}).Next()
	folder := filepath.Base(filepath.Dir(frame.File))
	return folder + "/" + filepath.Base(frame.File) + ":" + strconv.Itoa(frame.Line)
}
