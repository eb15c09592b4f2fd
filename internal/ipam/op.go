package ipam

import "reflect"

// NewEdit returns an empty edit for an operation such as "pool.add", to be filled from JSON. It returns false for an
// unknown operation.
func NewEdit(op string) (Edit, bool) {
	for _, e := range Edits() {
		if e.Op() == op {
			return e, true
		}
	}
	return nil, false
}

// Edits returns one empty edit of each operation.
func Edits() []Edit {
	return append(planEdits(), elasticEdits()...)
}

// planEdits returns those for the plan, hosts and deploys.
func planEdits() []Edit {
	return []Edit{
		new(CreateNetwork),
		new(ModifyNetwork),
		new(RemoveNetwork),
		new(AddSubnet),
		new(ModifySubnet),
		new(RemoveSubnet),
		new(AddPool),
		new(ModifyPool),
		new(RemovePool),
		new(AddExclusion),
		new(RemoveExclusion),
		new(AddReservation),
		new(RemoveReservation),
		new(BindReservations),
		new(ReleaseOwner),
		new(TakeAddress),
		new(ReleaseAddress),
		new(DrainHost),
		new(RemoveHost),
		new(AdmitHost),
		new(LockDeploy),
		new(UnlockDeploy),
		new(KeepOrphan),
		new(RemoveOrphan),
		new(RecordWorker),
	}
}

// NetworkOf returns the network that an edit names as the one it is about. It returns false if the edit has no such
// field.
func NetworkOf(e Edit) (ref string, is bool) {
	f := reflect.Indirect(reflect.ValueOf(e)).FieldByName("Network")
	if !f.IsValid() {
		return "", false
	}
	return f.String(), true
}

// Op is the name of the operation.
func (*CreateNetwork) Op() string { return "network.create" }

// Op is the name of the operation.
func (*ModifyNetwork) Op() string { return "network.modify" }

// Op is the name of the operation.
func (*RemoveNetwork) Op() string { return "network.remove" }

// Op is the name of the operation.
func (*AddSubnet) Op() string { return "subnet.add" }

// Op is the name of the operation.
func (*ModifySubnet) Op() string { return "subnet.modify" }

// Op is the name of the operation.
func (*RemoveSubnet) Op() string { return "subnet.remove" }

// Op is the name of the operation.
func (*AddPool) Op() string { return "pool.add" }

// Op is the name of the operation.
func (*ModifyPool) Op() string { return "pool.modify" }

// Op is the name of the operation.
func (*RemovePool) Op() string { return "pool.remove" }

// Op is the name of the operation.
func (*AddExclusion) Op() string { return "exclusion.add" }

// Op is the name of the operation.
func (*RemoveExclusion) Op() string { return "exclusion.remove" }

// Op is the name of the operation.
func (*AddReservation) Op() string { return "reservation.add" }

// Op is the name of the operation.
func (*RemoveReservation) Op() string { return "reservation.remove" }

// Op is the name of the operation.
func (*BindReservations) Op() string { return "reservation.bind" }

// Op is the name of the operation.
func (*ReleaseOwner) Op() string { return "owner.release" }

// Op is the name of the operation.
func (*TakeAddress) Op() string { return "address.take" }

// Op is the name of the operation.
func (*ReleaseAddress) Op() string { return "address.release" }

// Op is the name of the operation.
func (*DrainHost) Op() string { return "host.drain" }

// Op is the name of the operation.
func (*RemoveHost) Op() string { return "host.remove" }

// Op is the name of the operation.
func (*AdmitHost) Op() string { return "host.admit" }
