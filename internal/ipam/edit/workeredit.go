package edit

import (
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// mostWorkerWord is the maximum length of a worker's hash and image, in bytes.
const mostWorkerWord = 255

// workers is the key range of the records of worker runs.
func workers() store.Range {
	return store.Prefix(append([]byte{ledger.SettingKeys}, "worker "...))
}

// Workers reads the last runs of workers, by project and service.
func Workers(tx store.Tx) ([]ipam.WorkerRun, error) {
	return ledger.AllJSON[ipam.WorkerRun](tx, workers(), "a worker's run")
}

// recordWorker records a worker's run. Each worker has one record, the last.
func recordWorker(c *run, e *ipam.RecordWorker) error {
	for what, name := range map[string]string{"project": e.Project, "service": e.Service} {
		if err := ipam.CheckName(what, name); err != nil {
			return err
		}
		if strings.Contains(name, "/") {
			return ipam.Refuse(ipam.ErrInvalid, "%q is not a %s name: it contains a slash", name, what)
		}
	}
	if e.Hash == "" || len(e.Hash) > mostWorkerWord || len(e.Image) > mostWorkerWord {
		return ipam.Refuse(ipam.ErrInvalid, "the worker %s of %s needs a hash, and its hash and image have at most %d "+
			"bytes", e.Service, e.Project, mostWorkerWord)
	}
	if err := changeable(c, e.Project); err != nil {
		return err
	}
	run := &ipam.WorkerRun{Project: e.Project, Service: e.Service, Hash: e.Hash, Image: e.Image, At: c.Now()}
	_, err := c.PutJSON(append(workers().From, e.Project+"/"+e.Service...), run)
	return err
}
