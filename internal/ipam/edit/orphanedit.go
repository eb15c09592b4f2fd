package edit

import (
	"strings"
	"unicode"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// mostVolumeName is the maximum length of a volume's name, in bytes. Engines make directories with these names.
const mostVolumeName = 255

// orphans is the key range of the records of orphaned volumes.
func orphans() store.Range {
	return store.Prefix(append([]byte{ledger.SettingKeys}, "orphan "...))
}

func orphanKey(volume string) []byte { return append(orphans().From, volume...) }

// Orphans reads the records of orphaned volumes, by name.
func Orphans(tx store.Tx) ([]ipam.Orphan, error) {
	return ledger.AllJSON[ipam.Orphan](tx, orphans(), orphanNoun)
}

// orphanNoun names a record that is damaged.
const orphanNoun = "an orphaned volume"

// keepOrphan records an orphaned volume. A recorded one of the same project keeps its time, and its services unless the
// edit names them.
func keepOrphan(c *run, e *ipam.KeepOrphan) error {
	if err := checkOrphan(e); err != nil {
		return err
	}
	had, err := ledger.ReadJSON[ipam.Orphan](c.Tx(), orphanKey(e.Volume), orphanNoun)
	if err != nil {
		return err
	}
	if err := changeable(c, e.Project); err != nil {
		return err
	}
	one := &ipam.Orphan{Volume: e.Volume, Project: e.Project, Service: e.Service, Since: c.Now(), Host: e.Host,
		Of: e.Of, Stage: e.Stage, Foreign: e.Foreign}
	if had != nil && had.Project == e.Project {
		one.Since = had.Since
		if one.Service == "" {
			one.Service = had.Service
		}
	} else if _, err := c.Event(&ipam.Event{Verb: ipam.VolumeOrphaned, Name: e.Volume, Detail: e.Project}); err != nil {
		return err
	}
	_, err = c.PutJSON(orphanKey(e.Volume), one)
	return err
}

func checkOrphan(e *ipam.KeepOrphan) error {
	if err := ipam.CheckName("project", e.Project); err != nil {
		return err
	}
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case e.Volume == "" || len(e.Volume) > mostVolumeName || strings.ContainsFunc(e.Volume, unprintable):
		return ipam.Refuse(ipam.ErrInvalid, "%q is not a volume name", e.Volume)
	case strings.Contains(e.Project, "/"):
		return ipam.Refuse(ipam.ErrInvalid, "%q is not a project name: it contains a slash", e.Project)
	case e.Stage != "" && e.Stage != ipam.OrphanSaving && e.Stage != ipam.OrphanRestoring:
		return ipam.Refuse(ipam.ErrInvalid, "the volume %s cannot have the stage %q; a stage must be %q, %q or "+
			"empty", e.Volume, e.Stage, ipam.OrphanSaving, ipam.OrphanRestoring)
	case e.Stage != "" && e.Of == "":
		return ipam.Refuse(ipam.ErrInvalid, "the volume %s has the stage %q, but the request does not name the "+
			"volume that it is a copy of", e.Volume,
			e.Stage)
	}
	return nil
}

// removeOrphan deletes a record. Only a deploy may delete that of a volume's only complete copy, because it has
// verified the new volume.
func removeOrphan(c *run, e *ipam.RemoveOrphan) error {
	had, err := ledger.ReadJSON[ipam.Orphan](c.Tx(), orphanKey(e.Volume), orphanNoun)
	if err != nil || had == nil {
		return err
	}
	if err := changeable(c, had.Project); err != nil {
		return err
	}
	if had.Stage == ipam.OrphanRestoring && c.deploy == (ipam.ID{}) {
		return ipam.Refuse(ipam.ErrInUse, "the volume %s may hold the only complete copy of %s, which an unfinished "+
			"deploy of %s was recreating", e.Volume, had.Of, had.Project).Advise(ipam.DoDeploy, had.Project)
	}
	if _, err := c.Event(&ipam.Event{Verb: ipam.OrphanEnded, Name: e.Volume, Detail: had.Project}); err != nil {
		return err
	}
	return c.Tx().Delete(orphanKey(e.Volume))
}

// changeable refuses to change a project's data while another deploy has the lock.
func changeable(c *run, project string) error {
	locks, err := DeployLocks(c.Tx(), c.Now())
	if err != nil {
		return err
	}
	for i := range locks {
		if lock := &locks[i]; lock.ID != c.deploy && lock.Project == project {
			return lockRefusal(lock)
		}
	}
	return nil
}
