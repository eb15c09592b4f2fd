package lab

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// In runs a function on a thread in a network namespace, given by its file. Sockets that it opens stay there.
func In[T any](file string, do func() (T, error)) (value T, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()            // never unlocked: the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() { // except the first thread, which stays and would move the process
			value, err = In(file, do)
			runtime.UnlockOSThread()
			return
		}
		var space *os.File
		if space, err = os.Open(file); err != nil {
			return
		}
		err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		_ = space.Close() // it was only read
		if err == nil {
			value, err = do()
		}
	}()
	<-done
	return value, err
}

// Namespace is the path of a named network namespace.
func Namespace(name string) string { return "/run/netns/" + name }
