package ipam

// NetworkType says who chooses the addresses of a network (BO-8).
type NetworkType string

// The types of networks.
const (
	Manual  NetworkType = ""        // static and automatic addresses, chosen here; written "manual"
	Dynamic NetworkType = "dynamic" // somebody else chooses; here they are recorded
	VIP     NetworkType = "vip"     // static addresses only
)

// OwnerRule maps the names of endpoints to an owner, a pool, or both. Of a network's rules the first that matches counts.
type OwnerRule struct {
	Pattern string `json:"pattern"`         // of a name or an owner; each * stands for any characters
	Owner   string `json:"owner,omitempty"` // where each * stands for what the pattern's * of that place matched
	Pool    string `json:"pool,omitempty"`
}

// Owners are whom the name of an endpoint can mean, the likeliest first: what a rule of the network makes of it, itself, and
// project/service/number for the names that Compose gives (shop-web-1, shop_web_1, and 0123456789ab_shop-web-1 while a
// replica is recreated).
func (n *Network) Owners(name string) []string { panic("pending") }
