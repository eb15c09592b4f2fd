package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// afterwards are the headers of a request with a large body, which is sent when it is not refused.
func afterwards() map[string]string { return map[string]string{"Expect": "100-continue"} }

// Check has the server compare its records with what runs. The zero request changes nothing; any other is for admins.
// It takes as long as the engine does.
func (c *Client) Check(ctx context.Context, req ipam.CheckRequest) (report ipam.CheckReport, err error) {
	if req == (ipam.CheckRequest{}) {
		return report, c.call(ctx, http.MethodGet, api.CheckPath, nil, nil, &report)
	}
	return report, c.fetch(ctx, request{method: http.MethodPost, path: api.CheckPath, body: req, header: afterwards()},
		&report)
}

// ReleaseLease ends a lease whose endpoint is gone, and returns what it was.
func (c *Client) ReleaseLease(ctx context.Context, req ipam.LeaseRelease) (was ipam.LeaseInfo, err error) {
	r := request{method: http.MethodPost, path: api.ReleasePath, body: req, header: afterwards()}
	return was, c.fetch(ctx, r, &was)
}

// TellEngine tells the server's witness what is heard of the engine of a host, for as long as ctx and the connection
// last, and has its questions answered. The function that it returns tells one thing, nil that there is nothing
// new; it may be called from several goroutines, and its error is that of the connection, after which it is of no use.
func (c *Client) TellEngine(ctx context.Context, host string,
	by ipam.Onlooker) (tell func(*ipam.EngineNews) error) {
	from, to := io.Pipe()
	stop := context.AfterFunc(ctx, func() {
		_ = from.CloseWithError(ctx.Err())
	}) // a connection that broke waits for the next line else
	var turn sync.Mutex
	tell = func(news *ipam.EngineNews) error {
		line := []byte{'\n'}
		if news != nil {
			text, err := json.Marshal(news)
			if err != nil {
				return err
			}
			line = append(text, '\n')
		}
		turn.Lock()
		defer turn.Unlock()
		_, err := to.Write(line)
		return err
	}
	go func() {
		defer stop()
		res, err := c.do(ctx, request{method: http.MethodPost, path: api.NewsPath, query: params{"host": host},
			body: struct{ io.Reader }{from}}) // which is closed below, with the reason
		if err == nil {
			answerAll(ctx, res.Body, tell, by)
			_ = res.Body.Close()
			err = errors.New("the daemon listens no longer")
		}
		_ = from.CloseWithError(err)
	}()
	return tell
}

// answerAll answers the questions that are asked until they end.
func answerAll(ctx context.Context, asked io.Reader, tell func(*ipam.EngineNews) error,
	by ipam.Onlooker) {
	for questions := json.NewDecoder(asked); ; {
		var q ipam.EngineQuestion
		if questions.Decode(&q) != nil || q.ID == 0 {
			return
		}
		go func() { // which ends with the answer, or with the connection
			_ = tell(&ipam.EngineNews{At: time.Now(), Answer: answerTo(ctx, by, &q)})
		}()
	}
}

func answerTo(ctx context.Context, by ipam.Onlooker, q *ipam.EngineQuestion) *ipam.EngineAnswer {
	answer := &ipam.EngineAnswer{ID: q.ID}
	switch {
	case q.Locked != nil:
		locked := by.Locked(ctx, *q.Locked)
		answer.Locked = &locked
	case q.Move != nil:
		moved, err := by.Move(ctx, *q.Move)
		if err != nil {
			moved.Error = err.Error()
		}
		answer.Move = &moved
	}
	return answer
}

// ShowEngine tells the server's witness what an engine runs.
func (c *Client) ShowEngine(ctx context.Context, view ipam.EngineView) error {
	var done struct{}
	return c.fetch(ctx, request{method: http.MethodPut, path: api.WitnessPath, body: view, header: afterwards()}, &done)
}
