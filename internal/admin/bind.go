package admin

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"reflect"
	"time"

	"berth/internal/admin/api"
)

// route is a row of the table api/endpoints.go with its handler.
type route struct {
	api.Spec
	handle func(http.ResponseWriter, *http.Request) error
}

// raw binds a row to a function that writes the answer itself, and that reads the body if there is one.
func raw[Req, Resp any](e api.Endpoint[Req, Resp],
	answer func(http.ResponseWriter, *http.Request, Req) error) route {
	return route{e.Spec(), func(w http.ResponseWriter, r *http.Request) error {
		var req Req
		if err := readParameters(r, reflect.ValueOf(&req).Elem()); err != nil {
			return err
		}
		if e.Pace != api.Brief {
			if err := untimed(w); err != nil {
				return err
			}
		}
		return answer(w, r, req)
	}}
}

// bind binds a row to a function that returns the answer.
func bind[Req, Resp any](e api.Endpoint[Req, Resp], answer func(context.Context, Req) (Resp, error)) route {
	return raw(e, func(w http.ResponseWriter, r *http.Request, req Req) error {
		if err := readBodyInto(r, reflect.ValueOf(&req).Elem()); err != nil {
			return err
		}
		resp, err := answer(r.Context(), req)
		if err == nil && e.Pace != api.Brief {
			err = timed(w)
		}
		if err != nil {
			return err
		}
		return replyPage(w, r, &resp)
	})
}

// shown binds a row to a function that returns the answer and its revision, for an ETag.
func shown[Req, Resp any](e api.Endpoint[Req, Resp], answer func(context.Context, Req) (Resp, uint64, error)) route {
	return raw(e, func(w http.ResponseWriter, r *http.Request, req Req) error {
		resp, revision, err := answer(r.Context(), req)
		if err != nil {
			return err
		}
		if !e.Tagged {
			return replyPage(w, r, &resp)
		}
		linkNext(w, r, &resp)
		return replyShown(w, r, revision, resp)
	})
}

// each binds a row whose answer is one list to a function that yields the items. They are sent one by one.
func each[Req, Resp, T any](e api.Endpoint[Req, Resp],
	items func(context.Context, Req) (iter.Seq2[T, error], error)) route {
	list := api.ListName(reflect.TypeFor[Resp]())
	return raw(e, func(w http.ResponseWriter, r *http.Request, req Req) error {
		all, err := items(r.Context(), req)
		if err != nil {
			return err
		}
		if e.Pace != api.Brief {
			w = &patient{w, http.NewResponseController(w)}
		}
		return replyEach(w, list, all)
	})
}

// listed binds a row that returns all items of a kind.
func listed[Resp, T any](s *Server, e api.Endpoint[api.None, Resp],
	all func(Service, context.Context) ([]T, error)) route {
	return each(e, func(ctx context.Context, _ api.None) (iter.Seq2[T, error], error) {
		items, err := all(s.cfg.Service, ctx)
		return yes(items), err
	})
}

// replyPage answers with one object. If it is a page of a list, it links to the next page.
func replyPage[Resp any](w http.ResponseWriter, r *http.Request, resp *Resp) error {
	listNotNull(reflect.ValueOf(resp).Elem())
	linkNext(w, r, resp)
	return reply(w, resp)
}

// listNotNull replaces nil lists that an answer must have by empty ones, because nil would be null in JSON.
func listNotNull(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice && f.IsNil() && !api.Omitted(v.Type().Field(i)) {
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
		}
	}
}

// linkNext sets the header that links to the next page (RFC 8288).
func linkNext(w http.ResponseWriter, r *http.Request, resp any) {
	list, ok := resp.(interface{ NextPage() string })
	if !ok || list.NextPage() == "" {
		return
	}
	q := r.URL.Query()
	q.Set("after", list.NextPage())
	w.Header().Set("Link", "<"+r.URL.EscapedPath()+"?"+q.Encode()+`>; rel="next"`)
}

// untimed removes the server's time limits from a long operation. The read limit must go, too, because its end counts
// as the client's departure.
func untimed(w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	return errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
}

// timed gives the client of a long operation the usual time to read the answer.
func timed(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetWriteDeadline(time.Now().Add(api.AnswerTimeout))
}
