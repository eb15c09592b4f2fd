package client

import (
	"errors"
	"fmt"
	"syscall"

	"berth/internal/admin/api"
)

// IsDenied reports whether an error is a missing permission.
func IsDenied(err error) bool { return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) }

// Denied returns the error for a socket without permission, with what to do.
func Denied(socket string) error {
	return fmt.Errorf("%w on the socket %s: run the command as root, or join the group %s and log in again",
		syscall.EACCES, socket, api.AdminGroup)
}
