package ipam

import "slices"

// maxFormerNames is how many former names a network keeps. The oldest go first.
const maxFormerNames = 16

// setFormerNames replaces the former names. It leaves out the present one.
func (n *Network) setFormerNames(names []string) error {
	n.FormerNames = nil
	for _, name := range names {
		if err := CheckName("network", name); err != nil {
			return err
		}
		n.keepName(name)
	}
	return nil
}

// Rename gives the network another name and keeps the present one as a former name.
func (n *Network) Rename(name string) {
	was := n.Name
	n.Name, n.FormerNames = name, Less(n.FormerNames, name)
	n.keepName(was)
}

// keepName adds a former name.
func (n *Network) keepName(name string) {
	if name == n.Name {
		return
	}
	n.FormerNames = append(Less(n.FormerNames, name), name)
	n.FormerNames = n.FormerNames[max(0, len(n.FormerNames)-maxFormerNames):]
}

// Less returns a copy of names without name, or nil if none is left.
func Less(names []string, name string) []string {
	left := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return other == name })
	if len(left) == 0 {
		return nil
	}
	return left
}
