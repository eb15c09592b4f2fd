package api

import (
	"time"

	"berth/internal/ipam"
)

// Role says what somebody may do.
type Role string

// The roles.
const (
	RoleAdmin    Role = "admin"
	RoleReadOnly Role = "read-only" // operations that read
	RoleAccount  Role = "account"   // the elastic addresses of one account
	RoleAnybody  Role = "anybody"   // of an Endpoint: whoever can connect; nobody has it
)

// TokenPrefix is how the text of every token begins, so that one that lies where it should not is recognised.
const TokenPrefix = "berth_"

// TokenInfo is a token as it is shown.
type TokenInfo struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Account string    `json:"account,omitempty"` // whose alone it is for, with RoleAccount
	Created time.Time `json:"created"`
	By      string    `json:"by"`               // who created it
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Expired bool      `json:"expired"`
}

// TokenLifetime is how long a token is valid of which nothing else is said.
const TokenLifetime = 90 * 24 * time.Hour

// TokenRequest asks for a token.
type TokenRequest struct {
	Name     string        `json:"name"`
	Role     Role          `json:"role,omitempty"`     // must be given, but with an account, where it is RoleAccount
	Account  string        `json:"account,omitempty"`  // what it may see and touch is this account's alone
	Lifetime ipam.Duration `json:"lifetime,omitempty"` // 0: TokenLifetime
	NoEnd    bool          `json:"no_end,omitempty"`   // it is valid until it is removed
}

// NewToken is a token that was just created, the only time that its text is shown.
type NewToken struct {
	TokenInfo
	Token string `json:"token"`
}

// TokenList is the answer of GET /v1/tokens.
type TokenList struct {
	Tokens []TokenInfo `json:"tokens"`
}
