package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Check makes the server compare its records with the engine. The zero request changes nothing; any other is for
// admins. The duration depends on the engine.
func (c *Client) Check(ctx context.Context, req ipam.CheckRequest) (ipam.CheckReport, error) {
	if req == (ipam.CheckRequest{}) {
		return ask(ctx, c, api.GetCheck)
	}
	return call(ctx, c, api.PostCheck, api.Body[ipam.CheckRequest]{Body: req})
}

// ReleaseLease ends a lease whose endpoint is gone, and returns it.
func (c *Client) ReleaseLease(ctx context.Context, req ipam.LeaseRelease) (ipam.LeaseInfo, error) {
	return call(ctx, c, api.PostRelease, api.Body[ipam.LeaseRelease]{Body: req})
}

// TellEngine connects to the server's witness to send it the events of a host's engine. The connection lasts until ctx
// ends or it breaks. by answers the server's questions. The returned function sends one event; nil means nothing new.
// It may be called concurrently. Its error is that of the connection, which is then unusable.
func (c *Client) TellEngine(ctx context.Context, host string,
	by ipam.Onlooker) (tell func(*ipam.EngineNews) error) {
	from, to := io.Pipe()
	stop := context.AfterFunc(ctx, func() {
		_ = from.CloseWithError(ctx.Err())
	}) // otherwise a broken connection would wait for the next line
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
		r := requestOf(api.PostNews, api.NewsRequest{Host: host})
		r.body = struct{ io.Reader }{from} // closed below, with the reason
		res, err := c.do(ctx, r)
		if err == nil {
			answerAll(ctx, res.Body, tell, by)
			_ = res.Body.Close()
			err = errors.New("the daemon stopped listening")
		}
		_ = from.CloseWithError(err)
	}()
	return tell
}

// answerAll answers questions until they end.
func answerAll(ctx context.Context, asked io.Reader, tell func(*ipam.EngineNews) error,
	by ipam.Onlooker) {
	for questions := json.NewDecoder(asked); ; {
		var q ipam.EngineQuestion
		if questions.Decode(&q) != nil || q.ID == 0 {
			return
		}
		go func() { // ends with the answer or with the connection
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

// ShowEngine sends a view of an engine to the server's witness.
func (c *Client) ShowEngine(ctx context.Context, view ipam.EngineView) error {
	_, err := call(ctx, c, api.PutWitness, api.Body[ipam.EngineView]{Body: view})
	return err
}
