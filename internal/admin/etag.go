package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"berth/internal/admin/api"
)

// shownTag returns the entity tag of a network's object. Its first part is the revision of the plan. If-Match uses only
// that part, so addresses that are taken meanwhile do not stop an edit. Its second part is a hash of the whole answer,
// which If-None-Match needs because the answer shows these addresses.
func shownTag(revision uint64, body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + strconv.FormatUint(revision, 10) + "-" + hex.EncodeToString(sum[:6]) + `"`
}

// ifMatch reads the revision that a change requires; 0: any.
func ifMatch(r *http.Request) (uint64, error) {
	values := r.Header.Values("If-Match")
	if len(values) == 0 || len(values) == 1 && values[0] == "*" {
		return 0, nil
	}
	given := strings.Join(values, ", ")
	tag, quoted := strings.CutPrefix(given, `"`)
	tag, closed := strings.CutSuffix(tag, `"`)
	number, _, _ := strings.Cut(tag, "-")
	revision, err := strconv.ParseUint(number, 10, 64)
	// no network has revision 0, and an edit would read it as any
	if !quoted || !closed || err != nil || revision == 0 {
		return 0, invalid("the header If-Match is %s, which is not valid: send the ETag of an earlier response, "+
			"such as %s, or *", given,
			api.ETag(1769846400000000))
	}
	return revision, nil
}

// noneMatches reports whether the client already has the object with the tag (If-None-Match, RFC 9110, 13.1.2).
func noneMatches(r *http.Request, tag string) bool {
	for _, value := range r.Header.Values("If-None-Match") {
		for given := range strings.SplitSeq(value, ",") {
			if given = strings.TrimPrefix(strings.TrimSpace(given), "W/"); given == tag || given == "*" {
				return true
			}
		}
	}
	return false
}

// replyShown answers with an object of a network and its ETag, or with 304 if the client has it.
func replyShown(w http.ResponseWriter, r *http.Request, revision uint64, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tag := shownTag(revision, body)
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache") // it may be stored, but must be revalidated
	if noneMatches(r, tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", api.JSONType)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(append(body, '\n')) // the server notices a client that is gone
	return nil
}
