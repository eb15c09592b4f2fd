package bolt

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"berth/store"
	"berth/store/internal/record"
)

// bbolt trusts what it reads. On a damaged file it panics, faults in its mapping or loops for ever, on goroutines of
// its own. So a child process reads the file first. It is the same program, started again.

const (
	// childEnv makes a process the child that checks the file of its descriptor 3.
	childEnv = "BERTH_CHECK_FILE"
	// exitLocked is the child's exit code if another process has locked the file. Go's own crashes exit with 2.
	exitCrashed, exitLocked = 2, 3

	maxProblems   = 32
	maxProblem    = 300 // bytes of one problem; bbolt adds the path of the pages
	childMaxStack = 64 << 20

	free = "free" // bbolt's name of a free page
)

// init is the entry of the child. Every program that opens a store can be one: the daemon, a command or a test.
func init() {
	if os.Getenv(childEnv) == "" {
		return
	}
	debug.SetMaxStack(childMaxStack)
	os.Exit(child(os.Stdout))
}

// childLimit returns the time limit of the child for a file. It assumes a disk with at least 4 MiB per second.
func childLimit(size int64) time.Duration {
	return time.Minute + time.Duration(size>>22)*time.Second
}

// runChild checks the file of f in a child. The report has the file's problems.
func runChild(ctx context.Context, path string, f *os.File, limit time.Duration) (Report, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, crash bytes.Buffer
	c := exec.CommandContext(limited, "/proc/self/exe")
	// The race detector delays the end of its processes by a second unless GORACE prevents that.
	c.Env = append(os.Environ(), childEnv+"=1", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0")
	c.ExtraFiles = []*os.File{f}
	c.Stdout, c.Stderr = &out, &crash
	err := c.Run()
	line, _, _ := strings.Cut(crash.String(), "\n")
	var r Report
	switch code := c.ProcessState.ExitCode(); {
	case err == nil:
		err = json.Unmarshal(out.Bytes(), &r)
	case ctx.Err() != nil:
		return r, ctx.Err()
	case limited.Err() != nil:
		r.Problems, err = []string{fmt.Sprintf("bbolt's check did not end within %v", limit)}, nil
	case code == exitLocked:
		return r, lockedError(path, path, "")
	case code == exitCrashed:
		r.Problems, err = []string{cut("bbolt crashes when it reads the file: " + line)}, nil
	}
	if err != nil {
		return r, fmt.Errorf("check the state %s in a separate process: %w: %s", path, err, line)
	}
	return r, nil
}

// child checks its file and writes a Report. It ends with an open transaction, because a goroutine may still read.
func child(w io.Writer) int {
	var r Report
	f := os.NewFile(3, "state")
	defer runtime.KeepAlive(f) // its descriptor closes with it, and is mapped below
	db, err := openReadOnly(f)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return exitLocked
	}
	var tx *bbolt.Tx
	if err == nil {
		tx, err = db.Begin(false)
	}
	if err != nil {
		r.problem("bbolt cannot open it: %v", err)
	} else if file, err := unix.Mmap(int(f.Fd()), 0, int(tx.Size()), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		fmt.Fprintln(os.Stderr, "map the file:", err)
		return 1
	} else {
		r.read(tx, file)
	}
	if json.NewEncoder(w).Encode(r) != nil {
		return 1
	}
	return 0
}

// openReadOnly opens the file of f again, so that its lock is separate from f's.
func openReadOnly(f *os.File) (*bbolt.DB, error) {
	return bbolt.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 0, &bbolt.Options{
		ReadOnly: true, Timeout: time.Second, PreLoadFreelist: true, FreelistType: bbolt.FreelistMapType,
	})
}

// read checks what a transaction sees.
func (r *Report) read(tx *bbolt.Tx, file []byte) {
	r.PageSize = tx.DB().Info().PageSize
	r.Pages, r.Commit = int(tx.Size()/int64(r.PageSize)), uint64(tx.ID())
	r.identity(tx)
	if len(r.Problems) > 0 {
		return
	}
	if r.pages(tx, file); len(r.Problems) > 0 {
		return
	}
	records := make(chan Report, 1)
	go func() {
		var found Report
		found.records(tx)
		records <- found
	}()
	if r.structure(tx); len(r.Problems) > 0 {
		return // reading the records may never end
	}
	found := <-records
	r.Records, r.Bytes, r.Problems = found.Records, found.Bytes, found.Problems
}

// problem adds a problem, and returns false when there are enough.
func (r *Report) problem(format string, args ...any) bool {
	r.Problems = append(r.Problems, cut(fmt.Sprintf(format, args...)))
	return len(r.Problems) < maxProblems
}

func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxProblem)], "?") }

// identity reads the meta bucket: format version and store id.
func (r *Report) identity(tx *bbolt.Tx) {
	b := tx.Bucket(bucketMeta)
	if b == nil {
		r.problem("it is a bbolt file, but not a Berth state (it has no bucket %q)", bucketMeta)
		return
	}
	_ = b.ForEach(func(k, v []byte) error {
		value, err := unseal(k, v)
		switch {
		case err != nil:
			r.problem("the entry %s of the meta bucket is damaged", record.Quote(k))
		case bytes.Equal(k, keyFormat):
			r.Format = parseFormat(value)
		case bytes.Equal(k, keyID):
			r.ID = string(value)
		}
		return err
	})
	switch {
	case len(r.Problems) > 0:
	case r.Format > Format:
		r.problem("it has the format %d, and this Berth knows formats up to %d: start the newer Berth that wrote it",
			r.Format, Format)
	case r.Format < 1:
		r.problem("the format version is missing")
	case !validID(r.ID):
		r.problem("the store id is missing")
	}
}

// records checks every record of the data bucket, and refuses unknown buckets.
func (r *Report) records(tx *bbolt.Tx) {
	_ = tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		if b == nil || !bytes.Equal(name, bucketData) && !bytes.Equal(name, bucketMeta) {
			r.problem("there is a bucket %s that Berth does not know", record.Quote(name))
		}
		return nil
	})
	b := tx.Bucket(bucketData)
	if b == nil {
		r.problem("the bucket %q is missing", bucketData)
		return
	}
	_ = b.ForEach(func(k, v []byte) error {
		value, err := unseal(k, v)
		if err != nil && !r.problem("the record %s is damaged", record.Quote(k)) {
			return store.ErrCorrupt
		}
		r.Records++
		r.Bytes += int64(len(k) + len(value))
		return nil
	})
}

// pages checks the bounds of each used page, and counts the free ones. bbolt's own check does neither.
func (r *Report) pages(tx *bbolt.Tx, file []byte) {
	listed := 0
	for id := 0; id < r.Pages && len(r.Problems) < maxProblems; {
		p, err := tx.Page(id)
		if err != nil {
			r.problem("page %d: %v", id, err)
			return
		}
		if p.Type == free {
			r.Free++
			id++
			continue
		}
		end := id + 1 + p.OverflowCount
		if end > r.Pages {
			r.problem("page %d extends beyond the end of the file", id)
			return
		}
		for next := id + 1; next < end; next++ {
			if p, err := tx.Page(next); err != nil || p.Type == free {
				r.problem("page %d is both free and in use", next)
				break
			}
		}
		page := file[id*r.PageSize : end*r.PageSize]
		if !within(page) {
			r.problem("page %d has an entry that extends beyond the page", id)
		}
		id = end
		if p.Type != "freelist" {
			continue
		}
		if listed = p.Count; listed == 0xFFFF { // the number does not fit its field, so it comes first
			listed = int(order.Uint64(page[pageHeader:]))
		}
	}
	if listed != r.Free && len(r.Problems) == 0 {
		r.problem("the list of free pages has %d entries, but %d pages are free", listed, r.Free)
	}
}

// within reports whether all entries of a page lie in it, including those of an inline bucket.
func within(page []byte) bool {
	if len(page) < pageHeader {
		return false
	}
	kind, n := order.Uint16(page[8:]), int(order.Uint16(page[10:]))
	if kind != flagBranch && kind != flagLeaf {
		return true
	}
	if pageHeader+n*elementSize > len(page) {
		return false
	}
	for i := range n {
		e := page[pageHeader+i*elementSize:]
		bucket, at, value := false, uint64(order.Uint32(e))+uint64(order.Uint32(e[4:])), uint64(0)
		if kind == flagLeaf {
			bucket = order.Uint32(e)&leafBucket != 0
			at = uint64(order.Uint32(e[4:])) + uint64(order.Uint32(e[8:]))
			value = uint64(order.Uint32(e[12:]))
		}
		if at+value > uint64(len(e)) || bucket && value < bucketSize ||
			bucket && order.Uint64(e[at:]) == 0 && !within(e[at+bucketSize:at+value]) {
			return false
		}
	}
	return true
}

// structure runs bbolt's check of the pages.
func (r *Report) structure(tx *bbolt.Tx) {
	for problem := range tx.Check(bbolt.WithKVStringer(shortHex{})) {
		if !r.problem("%v", problem) {
			return
		}
	}
}

// shortHex prints the beginning of a key, because a damaged one can be as long as the file.
type shortHex struct{}

func (shortHex) KeyToString(b []byte) string   { return hex.EncodeToString(b[:min(len(b), 32)]) }
func (shortHex) ValueToString(b []byte) string { return shortHex{}.KeyToString(b) }
