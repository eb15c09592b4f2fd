package admin

import (
	"bytes"
	"log"

	"github.com/sirupsen/logrus"
)

// ErrorLog returns what an http.Server is to write to, so that what it says is in the daemon's log and has its form: at
// a level what clients do to their connections, and as a warning what keeps the server from taking any.
func ErrorLog(to *logrus.Entry, level logrus.Level) *log.Logger {
	return log.New(&lineLog{to, level}, "", 0)
}

// lineLog is where http.Server writes, a line at a time.
type lineLog struct {
	log   *logrus.Entry
	level logrus.Level
}

func (l *lineLog) Write(line []byte) (int, error) {
	level := l.level
	if bytes.HasPrefix(line, []byte("http: Accept error")) { // no file descriptor is left, say
		level = min(level, logrus.WarnLevel)
	}
	l.log.Log(level, string(bytes.TrimSpace(line)))
	return len(line), nil
}
