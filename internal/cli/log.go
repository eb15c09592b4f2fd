package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"berth/internal/advice"
	"berth/internal/shorten"

	"github.com/sirupsen/logrus"
)

// IsJournal reports whether w is the journal. systemd puts its device and inode in JOURNAL_STREAM (systemd.exec(5)),
// because a child may inherit the variable and write elsewhere.
func IsJournal(w io.Writer, stream string) bool {
	f, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// SayOfCompose prints the messages of the library for Compose files as messages of berth.
func (p *Program) SayOfCompose() {
	logrus.SetOutput(p.Stderr) // the library has no other logger
	logrus.SetFormatter(composeSays{})
}

// composeSays is a hook that prints a message. It drops the one about the obsolete `version`, which Berth writes for
// old programs.
type composeSays struct{}

func (composeSays) Format(e *logrus.Entry) ([]byte, error) {
	if strings.Contains(e.Message, "`version` is obsolete") {
		return nil, nil
	}
	return []byte("berth: " + Printable(e.Message) + "\n"), nil
}

// NewLog returns the daemon's log. In the journal its lines have no time, because the journal adds one.
func NewLog(w io.Writer, atLeast, form string, journal bool) (*logrus.Entry, error) {
	log := logrus.New()
	log.SetOutput(w)
	log.AddHook(advised{})
	level, err := logrus.ParseLevel(atLeast)
	if err != nil {
		return nil, fmt.Errorf("--log-level is %q: use debug, info, warning or error", atLeast)
	}
	log.SetLevel(level)
	switch form {
	case "text":
		log.SetFormatter(&logrus.TextFormatter{DisableColors: true, FullTimestamp: true, DisableTimestamp: journal})
	case "json":
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: time.RFC3339Nano})
	default:
		return nil, fmt.Errorf("--log-format is %q: use text or json", form)
	}
	return logrus.NewEntry(log), nil
}

// advised adds advice to errors in the log, and shortens values from outside.
type advised struct{}

func (advised) Levels() []logrus.Level { return logrus.AllLevels }

func (advised) Fire(e *logrus.Entry) error {
	if err, ok := e.Data[logrus.ErrorKey].(error); ok {
		e.Data[logrus.ErrorKey] = advice.Text(err)
	}
	for key, value := range e.Data {
		if text, ok := value.(string); ok {
			e.Data[key] = shorten.Values(text)
		}
	}
	e.Message = shorten.Values(e.Message)
	return nil
}
