package api

import "berth/internal/ipam"

// ElasticList is the answer of GET /v1/elastic.
type ElasticList struct {
	Addresses []ipam.ElasticInfo `json:"addresses"`
	Paged
}

// ElasticRangeList is the answer of GET /v1/elastic/ranges.
type ElasticRangeList struct {
	Ranges []ipam.ElasticRangeInfo `json:"ranges"`
}

// AccountList is the answer of GET /v1/accounts.
type AccountList struct {
	Accounts []ipam.AccountInfo `json:"accounts"`
}
