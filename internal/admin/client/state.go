package client

import (
	"context"
	"fmt"
	"io"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Status returns the state of the server.
func (c *Client) Status(ctx context.Context) (api.Status, error) { return ask(ctx, c, api.GetStatus) }

// Version returns the version of the server.
func (c *Client) Version(ctx context.Context) (api.Version, error) {
	return ask(ctx, c, api.GetVersion)
}

// Backup copies a snapshot of the server's state to w: of the host's own store, or of the shared one. It returns the
// number of bytes and the id of the store. After an error the content of w is not a backup.
func (c *Client) Backup(ctx context.Context, w io.Writer, shared bool) (size int64, storeID string, err error) {
	var req api.BackupRequest
	if shared {
		req.Store = "shared"
	}
	res, err := c.do(ctx, requestOf(api.PostBackup, req))
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	size, err = io.Copy(w, res.Body)
	if err != nil {
		return size, "", fmt.Errorf("the backup broke off after %d of %d bytes: %w", size, res.ContentLength,
			sentence(err))
	}
	return size, res.Header.Get(api.StoreIDHeader), nil
}

// SaveState makes the server write its state to its path again.
func (c *Client) SaveState(ctx context.Context) (api.SavedState, error) {
	return ask(ctx, c, api.PostSave)
}

// Fsck makes the server check its file and its records.
func (c *Client) Fsck(ctx context.Context) (api.FsckReport, error) { return ask(ctx, c, api.PostFsck) }

// Mend does the part of the server's host in mending a shared store that went back to an earlier state.
func (c *Client) Mend(ctx context.Context, opt ipam.MendOptions) (ipam.MendReport, error) {
	return call(ctx, c, api.PostMend, api.Body[ipam.MendOptions]{Body: opt})
}
