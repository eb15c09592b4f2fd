package admin

import (
	"bytes"
	"log"

	"github.com/sirupsen/logrus"
)

// ErrorLog returns a logger for an http.Server that writes to the daemon's log. Errors of clients' connections have the
// given level. An error that keeps the server from accepting connections is a warning.
func ErrorLog(to *logrus.Entry, level logrus.Level) *log.Logger {
	return log.New(&lineLog{to, level}, "", 0)
}

// lineLog is the io.Writer of that logger. It gets a line at a time.
type lineLog struct {
	log   *logrus.Entry
	level logrus.Level
}

func (l *lineLog) Write(line []byte) (int, error) {
	level := l.level
	if bytes.HasPrefix(line, []byte("http: Accept error")) { // for example, no file descriptor is left
		level = min(level, logrus.WarnLevel)
	}
	l.log.Log(level, string(bytes.TrimSpace(line)))
	return len(line), nil
}
