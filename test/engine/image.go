//go:build engine

package engine

import (
	"archive/tar"
	"bytes"
	"os"
	"time"

	"berth/test/lab"
)

const imageName = "berth-t-busybox"

// sleepForever is the containers' command. The shell ends on SIGTERM, so that a stop does not take ten seconds.
var sleepForever = []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"}

// importImage creates the image of the tests in an engine, from scratch: one static busybox and links to it.
func importImage(e Engine) error { return importAs(e, imageName) }

// importAs creates it under another name, for pages that name an image. By default it runs sleepForever.
func importAs(e Engine, name string) error {
	busybox, err := lab.Tool("busybox")
	if err != nil {
		return err
	}
	archive, err := imageArchive(busybox)
	if err != nil {
		return err
	}
	_, err = lab.Run(time.Minute, bytes.NewReader(archive), "docker", "--host", "unix://"+e.Socket, "import",
		"--change", `CMD ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]`, "-", name)
	return err
}

// imageArchive returns the image's file system as a tar file.
func imageArchive(busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	put := func(h tar.Header, content []byte) {
		h.Size = int64(len(content))
		if err == nil {
			err = w.WriteHeader(&h)
		}
		if err == nil {
			_, err = w.Write(content)
		}
	}
	put(tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	put(tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755}, program)
	for _, applet := range []string{"sh", "ip", "ping", "sleep"} {
		put(tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
	}
	if err != nil {
		return nil, err
	}
	return buf.Bytes(), w.Close()
}
