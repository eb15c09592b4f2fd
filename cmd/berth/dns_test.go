package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"github.com/rogpeppe/go-internal/testscript"
)

var answersAt = regexp.MustCompile(`the DNS server answers.* address="?(127\.0\.0\.1:[0-9]+)`)

// answers queries a name until the answer is WANT: the addresses or names in order, separated by blanks, or NODATA
// or the code.
func answers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: answers LOG NAME TYPE WANT")
	}
	name, kind := dns.Fqdn(args[1]), dns.StringToType[args[2]]
	if args[2] == "PTR" {
		var err error
		name, err = dns.ReverseAddr(args[1])
		ts.Check(err)
	}
	q := new(dns.Msg)
	q.SetQuestion(name, kind)
	got := ""
	for late := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if at := answersAt.FindStringSubmatch(ts.ReadFile(args[0])); at != nil {
			c := dns.Client{Timeout: 10 * time.Second}
			m, _, err := c.Exchange(q, at[1])
			if got = answered(m, err); got == args[3] {
				return
			}
		}
		if time.Now().After(late) {
			ts.Fatalf("%s %s is answered by %q, never by %q", args[1], args[2], got, args[3])
		}
	}
}

func answered(m *dns.Msg, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case len(m.Answer) == 0 && m.Rcode == dns.RcodeSuccess:
		return "NODATA"
	case len(m.Answer) == 0:
		return dns.RcodeToString[m.Rcode]
	}
	var all []string
	for _, rr := range m.Answer {
		all = append(all, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
