// Package advice turns the advice of a refusal into a sentence with the command that helps. The core returns advice as
// data (ipam.Advice), because it knows no commands. Every error that a person reads ends with what to do next.
//
// The driver, the command line and the log call Text before they show an error. The sentences are in a table. A test
// fails if a kind of advice has no sentence.
package advice

import (
	"fmt"
	"strings"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

// sentence says how something is done, after "or" or as a clause of its own.
func sentence(do ipam.Do) string {
	switch do {
	case ipam.DoListNetworks:
		return "`berth network ls` lists the networks"
	case ipam.DoListSubnets:
		return "`berth subnet ls` lists the subnets"
	case ipam.DoListPools:
		return "`berth pool ls %s` lists its pools"
	case ipam.DoListExclusions:
		return "`berth exclusion ls %s` lists the exclusions"
	case ipam.DoListReservations:
		return "`berth reservation ls %s` lists the reservations"
	case ipam.DoListLeases:
		return "`berth lease ls` lists the holders"
	case ipam.DoListSpaces:
		return "`berth subnet ls --sort space` lists the spaces"
	case ipam.DoListHosts:
		return "`berth host ls` lists the hosts"
	case ipam.DoShowStatus:
		return "`berth status` shows the details"
	case ipam.DoPlanNetwork:
		return "plan it with `berth network create`"
	case ipam.DoPlanInSpace:
		return "plan one with `berth network create --space %s`"
	case ipam.DoModifyNetwork:
		return "change it with `berth network modify %s`"
	case ipam.DoRenameNetwork:
		return "rename one of them with `berth network modify --name`"
	case ipam.DoModifyStatic:
		return "change the band with `berth network modify --static`"
	case ipam.DoAddStatic:
		return "add the band with `berth network modify %s --static`"
	case ipam.DoLowerHeadroom:
		return "lower the headroom with `berth network modify --headroom`"
	case ipam.DoRemoveNetworkAll:
		return "to remove it anyway, use `berth network rm %s`"
	case ipam.DoAddSubnetTo:
		return "add one with `berth subnet add %s CIDR`"
	case ipam.DoChangeSubnet:
		return "change it with `berth subnet modify`"
	case ipam.DoRemoveSubnetOf:
		return "to remove it anyway, use `berth subnet rm %s %s`"
	case ipam.DoAddPoolTo:
		return "add a pool with `berth pool add`"
	case ipam.DoEnlargePools:
		return "add a pool with `berth pool add`"
	case ipam.DoEnlargeNetwork:
		return "add a pool to network %s with `berth pool add`"
	case ipam.DoEndExclusion:
		return "remove the exclusion with `berth exclusion rm`"
	case ipam.DoShrinkExclusion:
		return "end the exclusion with `berth exclusion rm`"
	case ipam.DoTakeExcluded:
		return "take it anyway with --force"
	case ipam.DoEndReservation:
		return "end the reservation with `berth reservation rm`"
	case ipam.DoReplaceReservation:
		return "end the reservation first with `berth reservation rm`, or change it with --replace, which keeps both " +
			"until the new one is in use"
	case ipam.DoReserveHeld:
		return "--force reserves it for the time after its release"
	case ipam.DoReserveSeveral:
		return "name them with `--ip %s:ip0=...,ip1=...`"
	case ipam.DoReleaseTaken:
		return "release it with `berth address release`"
	case ipam.DoReleaseOwner:
		return "run `berth address release %s --owner %s`"
	case ipam.DoRetakeAddress:
		return "change it with `berth address take`"
	case ipam.DoRecordAddress:
		return "once that system has chosen one, record it with `berth address take`"
	case ipam.DoReleaseDead:
		return "if there is no such container, `berth lease release` frees it"
	case ipam.DoReleaseDeadOn:
		return "if there is no such container, `berth lease release` frees it on host %s"
	case ipam.DoForceRelease:
		return "--force releases it anyway; a container that has it could then share it with another"
	case ipam.DoImportAgain:
		return "import it again to add the rest"
	case ipam.DoImportInstead:
		return "`berth plan import` creates any number of subnets"
	case ipam.DoLeaveOut:
		return "leave it out"
	case ipam.DoRunCheck:
		return "`berth check` shows the leases that remain"
	case ipam.DoRunFsck:
		return "run `berth state check`"
	case ipam.DoRestore:
		return "restore a backup with `berth state restore`"
	case ipam.DoRestoreShared:
		return "begin again with `berth state restore --shared`"
	case ipam.DoCopyOn:
		return "`berth state copy` continues it"
	case ipam.DoMoveSpaces:
		return "move them to its own store with `berth state copy`"
	case ipam.DoMendStore:
		return "`berth state mend --dry-run` shows what is missing, and `berth state mend --yes` on each host " +
			"writes it back"
	case ipam.DoMendThere:
		return "run `berth state mend --yes` there; if a host is gone for good, run `berth state mend --yes --gone " +
			"HOST` on another host"
	case ipam.DoLetHostIn:
		return "`berth host admit %s` lets it in again"
	case ipam.DoAskHostToGo:
		return "ask it to go with `berth host rm %s`, without --off"
	case ipam.DoRemoveAHost:
		return "remove one with `berth host rm`"
	case ipam.DoRemoveThere:
		return "remove it there first with `berth host rm %s`"
	case ipam.DoFreeHost:
		return "if that host is gone for good, `berth host rm %s --off` releases its name and its addresses"
	case ipam.DoSayHostOff:
		return "if that machine is off for good, confirm it with `berth host rm --off %s`"
	case ipam.DoEndDrain:
		return "`berth host drain --undo %s` ends the drain"
	case ipam.DoListAccounts:
		return "`berth elastic account ls` lists the accounts"
	case ipam.DoForceAccount:
		return "release them too with `berth elastic account rm %s --force`"
	case ipam.DoListElastic:
		return "`berth elastic ls` lists them with their accounts"
	case ipam.DoListElasticRanges:
		return "`berth elastic range ls` lists the ranges"
	case ipam.DoAddElasticRange:
		return "add one with `berth elastic range add`"
	case ipam.DoAllocate:
		return "allocate it with `berth elastic allocate --ip %s`"
	case ipam.DoAllocateElastic:
		return "allocate one with `berth elastic allocate`, and associate it"
	case ipam.DoUnlockDeploy:
		return "if that deploy has ended, unlock it with `berth deploy unlock %s`"
	case ipam.DoDeploy:
		return "deploy it again with `berth deploy apply -p %s`"
	case ipam.DoDisassociate:
		return "end the association with `berth elastic disassociate %s`"
	case ipam.DoTurnDHCPOff:
		return "turn DHCP off there first with `berth subnet modify %s %s --dhcp=false`"
	case ipam.DoRunEdge:
		return "start it on this host with `berth edge`"
	case ipam.DoCopyToShared:
		return "move the elastic addresses with `berth state copy --from bolt --to etcd`, or end the association " +
			"before the host shares a store"
	case ipam.DoMoveElastic:
		return "move it with --move"
	case ipam.DoTurnElasticOn:
		return "turn them on with `berth network modify %s --elastic on`"
	}
	return ""
}

// Sentence is advice for a person.
func Sentence(a ipam.Advice) string {
	form := sentence(a.Do)
	args := make([]any, len(a.With))
	for i, with := range a.With {
		args[i] = with
	}
	for strings.Count(form, "%s") > len(args) { // of any
		form = strings.Replace(form, " %s", "", 1)
	}
	return fmt.Sprintf(form, args[:strings.Count(form, "%s")]...)
}

// Join writes advice behind a text, each once, in the words of the command line.
func Join(text string, all []ipam.Advice) string { return JoinIn(Sentence, text, all) }

// JoinIn is Join in other words. An empty sentence is left out.
func JoinIn(words func(ipam.Advice) string, text string, all []ipam.Advice) string {
	for _, a := range all {
		say := words(a)
		switch {
		case say == "" || strings.Contains(text, say):
		case a.Or:
			text += ", or " + say
		default:
			text += "; " + say
		}
	}
	return text
}

// Text is an error with what helps against it.
func Text(err error) string { return Join(shorten.Values(err.Error()), ipam.AdviceOf(err)) }
