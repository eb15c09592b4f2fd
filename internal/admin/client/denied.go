package client

import (
	"errors"
	"fmt"
	"syscall"

	"berth/internal/admin/api"
)

// IsDenied tells whether an error is that we may not.
func IsDenied(err error) bool { return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) }

// Denied is the error of a socket that we may not open: that it is so, and how one may.
func Denied(socket string) error {
	return fmt.Errorf("%w on the socket %s: run the command as root, or join the group %s and log in again",
		syscall.EACCES, socket, api.AdminGroup)
}
