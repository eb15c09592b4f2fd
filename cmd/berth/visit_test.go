package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// visit FILE opens the link in a file as browsers do, and as strangers would, and prints the answers.
func visit() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	link, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		panic(err)
	}
	without, wrong := *link, *link
	without.RawQuery, wrong.RawQuery = "", "secret=ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	res, _ := knock(&without, "", "")
	if res == nil {
		fmt.Println("nobody is there")
		return
	}
	fmt.Println("without the link:", res.StatusCode)
	res, _ = knock(&wrong, "", "")
	fmt.Println("with a wrong one:", res.StatusCode)
	res, _ = knock(link, "berth.example:"+link.Port(), "")
	fmt.Println("under another name:", res.StatusCode)
	res, _ = knock(link, "", "")
	fmt.Println("with the link:", res.StatusCode, "to", res.Header.Get("Location"))
	cookie, _, _ := strings.Cut(res.Header.Get("Set-Cookie"), ";")
	res, body := knock(&without, "", cookie)
	first, _, _ := strings.Cut(body, "\n")
	fmt.Println("with its cookie:", res.StatusCode, first)
	without.Path = "/v1/status"
	res, _ = knock(&without, "", cookie)
	fmt.Println("the API:", res.StatusCode)
}

// knock sends one request and follows no redirect. The result is nil if nobody answers.
func knock(to *url.URL, host, cookie string) (*http.Response, string) {
	req, err := http.NewRequest(http.MethodGet, to.String(), nil)
	if err != nil {
		panic(err)
	}
	req.Host = host
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	res, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		return nil, ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		panic(err)
	}
	return res, string(body)
}
