package client

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Status asks how the server is.
func (c *Client) Status(ctx context.Context) (st api.Status, err error) {
	return st, c.call(ctx, http.MethodGet, api.StatusPath, nil, nil, &st)
}

// Version asks which Berth answers.
func (c *Client) Version(ctx context.Context) (v api.Version, err error) {
	return v, c.call(ctx, http.MethodGet, api.VersionPath, nil, nil, &v)
}

// Backup copies the state of the server, as it is at one moment, to w: that of the host's own store, or of the one that
// it shares. It returns the number of bytes and the id of the store. After an error what w has is not a backup.
func (c *Client) Backup(ctx context.Context, w io.Writer, shared bool) (size int64, storeID string, err error) {
	q := params{}
	if shared {
		q["store"] = "shared"
	}
	res, err := c.do(ctx, request{method: http.MethodPost, path: "/v1/backup", query: q})
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

// SaveState has the server write its state to its place anew.
func (c *Client) SaveState(ctx context.Context) (saved api.SavedState, err error) {
	return saved, c.call(ctx, http.MethodPost, api.SavePath, nil, nil, &saved)
}

// Fsck has the server check its file and its records.
func (c *Client) Fsck(ctx context.Context) (report api.FsckReport, err error) {
	return report, c.call(ctx, http.MethodPost, "/v1/fsck", nil, nil, &report)
}

// Mend does the part of the server's host in mending a shared store that was put back to an earlier state.
func (c *Client) Mend(ctx context.Context, opt ipam.MendOptions) (report ipam.MendReport, err error) {
	return report, c.fetch(ctx, request{method: http.MethodPost, path: api.MendPath, body: opt}, &report)
}
