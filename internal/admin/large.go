package admin

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// How many things a body may have: what they take in memory is more than what they take in the body.
const (
	maxThings   = 120_000 // of a plan, or of what an engine shows, where it is read alone
	maxNetworks = 20_000  // of a plan, and subnets: each is larger than what it holds
	newsThings  = 40_000  // of a line of news
	fewThings   = 20_000  // of all others
)

// maxStretch is how many bytes there may be between two things. No text that is allowed is as long, nor is a list.
const maxStretch = 1 << 20

// readLarge reads a body into v as it comes, so that the text itself is not kept, unless there are more than so many
// things in it. It begins when it is its turn, or the body is there as a whole.
func readLarge(r *http.Request, v any, most int, how ...json.Options) error {
	if err := checkType(r); err != nil && r.ContentLength != 0 {
		return err
	}
	in := bufio.NewReaderSize(r.Body, smallBody+1)
	if _, err := in.Peek(smallBody + 1); err != nil && !errors.Is(err, io.EOF) {
		return notArrived(err)
	}
	body := &counted{from: in, count: count{most: most}}
	err := json.UnmarshalRead(body, v, append(how, strictly())...)
	switch {
	case body.err != nil && !errors.Is(body.err, io.EOF):
		return notArrived(body.err)
	case body.first == 0:
		return emptyBody(r)
	case body.first == 'n' && err == nil:
		return nullBody()
	}
	return wrongBody(err)
}

// fewNetworks refuses a plan of more than maxNetworks networks, or subnets.
func fewNetworks() json.Options {
	return json.WithUnmarshalers(json.JoinUnmarshalers(atMost[ipam.PlannedNetwork]("networks"),
		atMost[ipam.PlannedSubnet]("subnets")))
}

func atMost[T any](what string) *json.Unmarshalers {
	n := 0
	return json.UnmarshalFromFunc(func(*jsontext.Decoder, *T) error {
		if n++; n > maxNetworks {
			return &api.Problem{Status: http.StatusRequestEntityTooLarge, Code: api.CodeTooLarge,
				Detail: fmt.Sprintf("the plan has more than %d %s; import it in parts", maxNetworks, what)}
		}
		return errors.ErrUnsupported // it is read as ever
	})
}

// counted is a body in which things are counted.
type counted struct {
	from  io.Reader
	count count
	first byte  // that is no space; 0: none has come
	err   error // with which it ended
}

func (c *counted) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.from.Read(p)
	if text := bytes.TrimLeft(p[:n], " \t\r\n"); c.first == 0 && len(text) > 0 {
		c.first = text[0]
	}
	if c.err = c.count.add(p[:n]); c.err == nil {
		c.err = err
	}
	return n, c.err
}

// count is how many things have come, as far as that can be told by their punctuation.
type count struct {
	most            int
	objects, commas int
	stretch         int // bytes since the last object began or ended
}

// add counts what has come next, and refuses what is too much.
func (c *count) add(text []byte) error {
	c.objects += bytes.Count(text, []byte("{"))
	c.commas += bytes.Count(text, []byte(","))
	if c.objects > c.most || c.commas > 8*c.most {
		return &api.Problem{Status: http.StatusRequestEntityTooLarge, Code: api.CodeTooLarge,
			Detail: fmt.Sprintf("the body has more than %d things; send them in parts", c.most)}
	}
	first, last := bytes.IndexAny(text, "{}"), bytes.LastIndexAny(text, "{}")
	if first < 0 {
		first = len(text)
	}
	if c.stretch += first; c.stretch > maxStretch {
		return &api.Problem{Status: http.StatusRequestEntityTooLarge, Code: api.CodeTooLarge,
			Detail: fmt.Sprintf("a part of the body has more than %d bytes and is no object", maxStretch)}
	}
	if last >= 0 {
		c.stretch = len(text) - last
	}
	return nil
}
