package ipam

// OpOf names the operation of an edit, as NewEdit reads it; "" for one that is not of this package.
func OpOf(e Edit) string {
	switch e.(type) {
	case *CreateNetwork:
		return "network.create"
	case *ModifyNetwork:
		return "network.modify"
	case *RemoveNetwork:
		return "network.remove"
	case *AddSubnet:
		return "subnet.add"
	case *ModifySubnet:
		return "subnet.modify"
	case *RemoveSubnet:
		return "subnet.remove"
	case *AddPool:
		return "pool.add"
	case *ModifyPool:
		return "pool.modify"
	case *RemovePool:
		return "pool.remove"
	case *AddExclusion:
		return "exclusion.add"
	case *RemoveExclusion:
		return "exclusion.remove"
	case *AddReservation:
		return "reservation.add"
	case *RemoveReservation:
		return "reservation.remove"
	case *BindReservations:
		return "reservation.bind"
	case *ReleaseOwner:
		return "owner.release"
	case *TakeAddress:
		return "address.take"
	case *ReleaseAddress:
		return "address.release"
	case *DrainHost:
		return "host.drain"
	case *RemoveHost:
		return "host.remove"
	case *AdmitHost:
		return "host.admit"
	}
	return ""
}
