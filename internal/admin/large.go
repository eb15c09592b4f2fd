package admin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The maximum number of objects in a body. They need more memory than their text.
const (
	maxThings   = 120_000 // of a plan or of an engine's view, which are read one at a time
	maxNetworks = 20_000  // networks of a plan, and subnets, because each is larger than its contents
	newsThings  = 40_000  // of a line of news
	fewThings   = 20_000  // of all other bodies
)

// maxStretch is the maximum number of bytes between two objects. No valid text or list is as long.
const maxStretch = 1 << 20

// readLarge decodes a body into v while it arrives, so that the text is not kept in memory. It refuses more than most
// objects. It begins when its turn comes, or when the body is complete.
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

// fewNetworks refuses a plan with more than maxNetworks networks or subnets.
func fewNetworks() json.Options {
	return json.WithUnmarshalers(json.JoinUnmarshalers(atMost[ipam.PlannedNetwork]("networks"),
		atMost[ipam.PlannedSubnet]("subnets")))
}

func atMost[T any](what string) *json.Unmarshalers {
	n := 0
	return json.UnmarshalFromFunc(func(*jsontext.Decoder, *T) error {
		if n++; n > maxNetworks {
			return problem(http.StatusRequestEntityTooLarge, api.CodeTooLarge,
				"the plan has more than %d %s; import it in parts", maxNetworks, what)
		}
		return errors.ErrUnsupported // it is decoded as usual
	})
}

// counted is a body whose objects are counted.
type counted struct {
	from  io.Reader
	count count
	first byte  // the first byte that is not white space; 0: none yet
	err   error // the error at its end
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

// count estimates the number of objects by their punctuation.
type count struct {
	most            int
	objects, commas int
	stretch         int // bytes since the last object began or ended
}

// add counts the next bytes, and refuses too many objects.
func (c *count) add(text []byte) error {
	c.objects += bytes.Count(text, []byte("{"))
	c.commas += bytes.Count(text, []byte(","))
	if c.objects > c.most || c.commas > 8*c.most {
		return problem(http.StatusRequestEntityTooLarge, api.CodeTooLarge,
			"the body has more than %d items; send them in parts", c.most)
	}
	first, last := bytes.IndexAny(text, "{}"), bytes.LastIndexAny(text, "{}")
	if first < 0 {
		first = len(text)
	}
	if c.stretch += first; c.stretch > maxStretch {
		return problem(http.StatusRequestEntityTooLarge, api.CodeTooLarge,
			"a part of the body has more than %d bytes and is not an object", maxStretch)
	}
	if last >= 0 {
		c.stretch = len(text) - last
	}
	return nil
}
