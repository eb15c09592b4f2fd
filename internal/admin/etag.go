package admin

import "strconv"

// keyHeader makes a change happen once, however often it is sent.
const keyHeader = "Idempotency-Key"

// etag is the entity tag of a revision.
func etag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }
