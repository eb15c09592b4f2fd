package main

import (
	"context"
	"fmt"
	"time"

	"berth/internal/ipam/ledger"

	"github.com/sirupsen/logrus"
)

// upgrading backs up a state of an older format next to path before it is upgraded, and logs the upgrade.
func upgrading(log *logrus.Entry, what, path string,
	backup func(ctx context.Context, path string) error) ledger.Upgrading {
	return ledger.Upgrading{
		Backup: func(ctx context.Context, format int) (string, error) {
			// the time distinguishes it from the backup of a failed upgrade
			file := fmt.Sprintf("%s.format%d-%s", path, format, time.Now().UTC().Format("20060102T150405.000000"))
			return file, backup(ctx, file)
		},
		Done: func(from, to int, backup string) {
			log.WithFields(logrus.Fields{"from": from, "to": to, "backup": backup}).
				Warnf("the %s was upgraded to a newer format; an older Berth can read only the backup", what)
		},
	}
}
