package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/internal/ipam"
)

// The headers of a message, from the Standard Webhooks specification (1.0.0).
const (
	headerID        = "webhook-id"        // the same at each attempt
	headerTimestamp = "webhook-timestamp" // of the attempt, in seconds since 1970
	headerSignature = "webhook-signature" // v1 and the base64 of an HMAC-SHA256 over ID.TIMESTAMP.BODY
)

// message is the content of a request.
type message struct {
	id       string
	happened time.Time
	body     []byte
}

// envelope is the body of a message.
type envelope struct {
	Type      string    `json:"type"` // the event's verb, or typeGap
	Timestamp time.Time `json:"timestamp"`
	Host      string    `json:"host"`
	Text      string    `json:"text,omitempty"` // the event in words
	Data      any       `json:"data"`           // an event in the admin API's form, or a gap
}

// typeGap is the type of a message about missing events.
const typeGap = "events.gap"

// gap is the reason for missing events and their time range. A zero Since means that the start is unknown.
type gap struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until"`
}

// The reasons for missing events.
const (
	reasonTrimmed = "the retention (--event-age, --event-count, --event-size) removed events before the receiver " +
		"accepted them"
	reasonStore   = "the daemon has another store, or one that was restored to an earlier state"
	reasonRefused = "the receiver has permanently refused an event"
	reasonPlace   = "the daemon no longer knew which events the receiver has"
)

func eventMessage(host string, e *ipam.Event) (message, error) {
	body, err := json.Marshal(envelope{e.Verb.String(), e.Time, host, e.Text(), e})
	return message{eventID(host, e), e.Time, body}, err
}

// eventID returns the id of an event's message. It is the same at each attempt and after restarts, and unique. The
// event's own id is not, because hosts number their own stores' events separately.
func eventID(host string, e *ipam.Event) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{host, e.Host, e.Verb, e.Space, e.Subnet, e.Address, e.Name, e.Network})
	return fmt.Sprintf("evt_%d_%s", e.ID, hex.EncodeToString(h.Sum(nil)[:6]))
}

func gapMessage(host string, g *gap) (message, error) {
	h := sha256.New()
	_ = binary.Write(h, binary.BigEndian, g.Since.UnixMicro())
	_, _ = h.Write([]byte(host + g.Reason))
	body, err := json.Marshal(envelope{typeGap, g.Until, host, g.Reason, g})
	return message{"gap_" + hex.EncodeToString(h.Sum(nil)[:12]), g.Until, body}, err
}

// Secret signs messages.
type Secret struct{ key []byte }

// The length of a key in bytes, from the specification.
const (
	minKey = 24
	maxKey = 64
)

// secretPrefix is the prefix of a secret. The key follows in base64.
const secretPrefix = "whsec_"

// ParseSecret reads a secret in the form of the specification: whsec_ and the base64 of 24 to 64 bytes.
func ParseSecret(text string) (*Secret, error) {
	coded, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	if !ok {
		return nil, errors.New("it does not begin with " + secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return nil, fmt.Errorf("the text after %s is not base64", secretPrefix)
	}
	if len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("its key has %d bytes; it must have %d to %d", len(key), minKey, maxKey)
	}
	return &Secret{key}, nil
}

// sign returns the signature of a message.
func (s *Secret) sign(id, stamp string, body []byte) string {
	h := hmac.New(sha256.New, s.key)
	_, _ = fmt.Fprintf(h, "%s.%s.", id, stamp)
	_, _ = h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
