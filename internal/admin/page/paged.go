package page

import (
	"net/http"
	"strconv"

	"berth/internal/ipam"
)

// perPage is the maximum number of rows of a list on one page. mostFrom is the maximum number of skipped rows.
const (
	perPage  = 100
	mostFrom = 1_000_000
)

// fromOf reads the number of skipped rows.
func fromOf(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	from, err := strconv.Atoi(text)
	if err != nil || from < 0 || from > mostFrom {
		return 0, ipam.Refuse(ipam.ErrInvalid,
			`the parameter "from" is %q; give the number of rows to skip, at most %d`,
			text, mostFrom)
	}
	return from, nil
}

// partFrom returns the requested part of a list, and a link to the next part.
func partFrom[T any](r *http.Request, text string, all []T) (part []T, next string, err error) {
	from, err := fromOf(text)
	if err != nil {
		return nil, "", err
	}
	if part = all[min(from, len(all)):]; len(part) > perPage {
		part, next = part[:perPage], with(r, "from", strconv.Itoa(from+perPage))
	}
	return part, next, nil
}
