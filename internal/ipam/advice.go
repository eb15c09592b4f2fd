package ipam

import (
	"fmt"
	"strings"
)

// Do names a remedy for a refusal. The code that shows the refusal writes the sentence for it (internal/advice).
type Do string

// The remedies. Advice.With holds the objects that a remedy needs.
const (
	DoListNetworks       Do = "network.list"
	DoListSubnets        Do = "subnet.list"
	DoListPools          Do = "pool.list"
	DoListExclusions     Do = "exclusion.list"
	DoListReservations   Do = "reservation.list"
	DoListLeases         Do = "lease.list"
	DoListSpaces         Do = "space.list"
	DoListHosts          Do = "host.list"
	DoShowStatus         Do = "status"
	DoPlanNetwork        Do = "network.create"
	DoPlanInSpace        Do = "network.create_in"
	DoModifyNetwork      Do = "network.modify"
	DoRenameNetwork      Do = "network.rename"
	DoModifyStatic       Do = "network.static"
	DoAddStatic          Do = "network.add_static"
	DoLowerHeadroom      Do = "network.headroom"
	DoRemoveNetworkAll   Do = "network.remove"
	DoAddSubnetTo        Do = "subnet.add"
	DoChangeSubnet       Do = "subnet.modify"
	DoRemoveSubnetOf     Do = "subnet.remove"
	DoAddPoolTo          Do = "pool.add"
	DoEnlargePools       Do = "pool.enlarge"
	DoEnlargeNetwork     Do = "network.enlarge"
	DoEndExclusion       Do = "exclusion.remove"
	DoShrinkExclusion    Do = "exclusion.shrink"
	DoTakeExcluded       Do = "exclusion.force"
	DoEndReservation     Do = "reservation.remove"
	DoReplaceReservation Do = "reservation.replace"
	DoReserveHeld        Do = "reservation.force"
	DoReserveSeveral     Do = "reservation.several"
	DoReleaseTaken       Do = "address.release"
	DoReleaseOwner       Do = "address.release_owner" // of: the network, the owner
	DoRetakeAddress      Do = "address.take"
	DoRecordAddress      Do = "address.record"
	DoReleaseDead        Do = "lease.release"
	DoReleaseDeadOn      Do = "lease.release-on" // of: the host that holds it
	DoForceRelease       Do = "lease.force"
	DoImportAgain        Do = "import.again"
	DoImportInstead      Do = "import"
	DoLeaveOut           Do = "import.leave_out"
	DoRunCheck           Do = "check"
	DoRunFsck            Do = "fsck"
	DoRestore            Do = "restore"
	DoRestoreShared      Do = "restore.shared"
	DoCopyOn             Do = "store.copy"
	DoMoveSpaces         Do = "store.copy_own"
	DoMendStore          Do = "store.mend"
	DoMendThere          Do = "store.mend_there"
	DoLetHostIn          Do = "host.admit"
	DoAskHostToGo        Do = "host.remove"
	DoRemoveAHost        Do = "host.remove_any"
	DoRemoveThere        Do = "host.remove_there"
	DoFreeHost           Do = "host.remove_off"
	DoSayHostOff         Do = "host.off"
	DoEndDrain           Do = "host.undrain"
	DoListAccounts       Do = "account.list"
	DoForceAccount       Do = "account.force"
	DoListElastic        Do = "elastic.list"
	DoListElasticRanges  Do = "elastic.ranges"
	DoAddElasticRange    Do = "elastic.range.add"
	DoAllocate           Do = "elastic.allocate"
	DoAllocateElastic    Do = "elastic.allocate.any"
	DoDisassociate       Do = "elastic.disassociate"
	DoUnlockDeploy       Do = "deploy.unlock"
	DoDeploy             Do = "deploy.apply"
	DoMoveElastic        Do = "elastic.move"
	DoTurnElasticOn      Do = "network.elastic"
	DoTurnDHCPOff        Do = "subnet.dhcp"
	DoRunEdge            Do = "edge"
	DoCopyToShared       Do = "store.copy.shared"
)

// Advice is one remedy for a refusal, as data.
type Advice struct {
	Do   Do       `json:"do"`
	With []string `json:"with,omitempty"` // names, ranges or hosts, in the order of the command
	Or   bool     `json:"or,omitempty"`   // an alternative to what the refusal itself suggests last
}

// Advise makes an Advice.
func Advise(do Do, with ...any) Advice {
	a := Advice{Do: do}
	for _, what := range with {
		a.With = append(a.With, fmt.Sprint(what))
	}
	return a
}

// OrLeaveOut adds that the object may also be left out of the document.
func (a Advice) OrLeaveOut() []Advice { return []Advice{a, OrAdvise(DoLeaveOut)} }

// OrAdvise makes an Advice that is an alternative to what the refusal itself suggests.
func OrAdvise(do Do, with ...any) Advice {
	a := Advise(do, with...)
	a.Or = true
	return a
}

// helped is a refusal with advice.
type helped struct {
	error
	advice []Advice
}

// Help gives a refusal advice.
func Help(refused error, advice ...Advice) error { return &helped{refused, advice} }

// Unwrap returns the refusal.
func (e *helped) Unwrap() error { return e.error }

// Helps returns the advice.
func (e *helped) Helps() []Advice { return e.advice }

// within returns the advice of the wrapped error. If err adds text after inner's, the first Advice no longer follows
// the sentence that it was an alternative to. Its Or is then cleared.
func within(err, inner error) []Advice {
	if inner == nil {
		return nil
	}
	all := AdviceOf(inner)
	if strings.HasSuffix(err.Error(), inner.Error()) {
		return all
	}
	for i := range all {
		all[i].Or = all[i].Or && i > 0
	}
	return all
}

// AdviceOf returns the advice of an error and of all errors that it wraps, the innermost first. The cause comes first
// because it must be removed before the rest can go on.
func AdviceOf(err error) (all []Advice) {
	if err == nil {
		return nil
	}
	switch e := err.(type) { //nolint:errorlint // each layer for itself
	case interface{ Unwrap() error }:
		all = within(err, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, within(err, one)...)
		}
	}
	if h, ok := err.(interface{ Helps() []Advice }); ok {
		all = append(all, h.Helps()...)
	}
	return all
}
