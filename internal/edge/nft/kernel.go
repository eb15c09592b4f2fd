package nft

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"
)

// kernel reads nftables and changes elements by netlink.
type kernel struct{ conn *nftables.Conn }

// sendBuffer is enough for the longest transaction: ten thousand mappings of both families take some 3 MB.
const sendBuffer = 16 << 20

func newKernel() (kernel, error) {
	conn, err := nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetWriteBuffer(sendBuffer), c.SetReadBuffer(sendBuffer))
	}))
	if err != nil {
		return kernel{}, fmt.Errorf("cannot reach nftables by netlink: %w", err)
	}
	return kernel{conn}, nil
}

// families are the kernel's numbers of the tables' families.
var families = map[knftables.Family]nftables.TableFamily{
	knftables.IPv4Family:   nftables.TableFamilyIPv4,
	knftables.IPv6Family:   nftables.TableFamilyIPv6,
	knftables.ARPFamily:    nftables.TableFamilyARP,
	knftables.NetDevFamily: nftables.TableFamilyNetdev,
}

// generation returns a number that changes with every change in nftables, but not when an element times out.
func (kernel) generation() (uint32, error) {
	const getGen, genID = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN, 1
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return 0, fmt.Errorf("cannot reach nftables by netlink: %w", err)
	}
	defer conn.Close()
	answer, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: getGen, Flags: netlink.Request},
		Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0},
	})
	if err != nil {
		return 0, fmt.Errorf("cannot ask nftables for its generation: %w", err)
	}
	for _, m := range answer {
		if len(m.Data) < 4 {
			continue
		}
		ad, err := netlink.NewAttributeDecoder(m.Data[4:])
		if err != nil {
			return 0, err
		}
		ad.ByteOrder = binary.BigEndian
		for ad.Next() {
			if ad.Type() == genID {
				return ad.Uint32(), nil
			}
		}
	}
	return 0, errors.New("nftables did not report its generation")
}

// foundTable is the current content of a table of Berth.
type foundTable struct {
	sets   map[string]*nftables.Set
	chains map[string]foundChain
}

type foundChain struct {
	*nftables.Chain
	comments []string
}

// structure reads Berth's tables with their sets, chains and rules, without elements.
func (k kernel) structure() (map[knftables.Family]foundTable, error) {
	all := map[knftables.Family]foundTable{}
	for name, family := range families {
		tables, err := k.conn.ListTablesOfFamily(family)
		if err != nil {
			return nil, fmt.Errorf("cannot list the %s tables: %w", name, err)
		}
		i := slices.IndexFunc(tables, func(t *nftables.Table) bool { return t.Name == tableName })
		if i < 0 {
			continue
		}
		all[name], err = k.table(tables[i])
		if err != nil {
			return nil, fmt.Errorf("cannot read the table %s %s: %w", name, tableName, err)
		}
	}
	return all, nil
}

func (k kernel) table(t *nftables.Table) (foundTable, error) {
	found := foundTable{sets: map[string]*nftables.Set{}, chains: map[string]foundChain{}}
	sets, err := k.conn.GetSets(t)
	if err != nil {
		return found, err
	}
	for _, s := range sets {
		found.sets[s.Name] = s
	}
	chains, err := k.conn.ListChainsOfTableFamily(t.Family)
	if err != nil {
		return found, err
	}
	comments, err := comments(t)
	if err != nil {
		return found, err
	}
	for _, c := range chains {
		if c.Table.Name == tableName {
			found.chains[c.Name] = foundChain{c, comments[c.Name]}
		}
	}
	return found, nil
}

// comments returns the comments of each chain's rules. The library's own function fails on rules with expressions that
// it does not know.
func comments(t *nftables.Table) (map[string][]string, error) {
	const getRule = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot reach nftables by netlink: %w", err)
	}
	defer conn.Close()
	of, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_RULE_TABLE, Data: []byte(t.Name + "\x00")},
	})
	if err != nil {
		return nil, err
	}
	answer, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: getRule, Flags: netlink.Request | netlink.Dump},
		Data:   append([]byte{byte(t.Family), unix.NFNETLINK_V0, 0, 0}, of...),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the rules: %w", err)
	}
	all := map[string][]string{}
	for _, m := range answer {
		chain, comment, err := ruleOf(m)
		if err != nil {
			return nil, err
		}
		all[chain] = append(all[chain], comment)
	}
	return all, nil
}

func ruleOf(m netlink.Message) (chain, comment string, err error) {
	if len(m.Data) < 4 {
		return "", "", errors.New("nftables reported a rule without its head")
	}
	ad, err := netlink.NewAttributeDecoder(m.Data[4:])
	if err != nil {
		return "", "", err
	}
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_RULE_CHAIN:
			chain = ad.String()
		case unix.NFTA_RULE_USERDATA:
			comment, _ = userdata.GetString(ad.Bytes(), userdata.TypeComment)
		}
	}
	return chain, comment, ad.Err()
}

// elements reads the elements of a set or map.
func (k kernel) elements(s *nftables.Set) (elements, error) {
	list, err := k.conn.GetSetElements(s)
	if err != nil {
		return nil, fmt.Errorf("cannot read the elements of %s: %w", s.Name, err)
	}
	if s.Interval {
		return joinEnds(list), nil
	}
	all := make(elements, len(list))
	for _, e := range list {
		all[string(e.Key)] = string(e.Val)
	}
	return all, nil
}

// joinEnds joins the beginnings and ends of intervals, which are separate in the kernel.
func joinEnds(list []nftables.SetElement) elements {
	slices.SortStableFunc(list, func(a, b nftables.SetElement) int {
		if c := cmp.Compare(string(a.Key), string(b.Key)); c != 0 {
			return c
		}
		switch { // the next interval may begin where one ends
		case a.IntervalEnd && !b.IntervalEnd:
			return -1
		case b.IntervalEnd && !a.IntervalEnd:
			return 1
		}
		return 0
	})
	all := elements{}
	open, begun := "", false
	for _, e := range list {
		switch {
		case e.IntervalEnd && begun:
			all[open], begun = string(e.Key), false
		case !e.IntervalEnd:
			open, begun = string(e.Key), true
			all[open] = ""
		}
	}
	return all
}
