package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The permissions of an entry in an access control list.
const (
	aclExecute = 1 << iota
	aclWrite
	aclRead
)

// The tags of entries (linux/posix_acl.h), in the kernel's order.
const (
	aclOwner      = 0x01
	aclOwnerGroup = 0x04
	aclGroup      = 0x08
	aclMask       = 0x10
	aclOther      = 0x20
)

const (
	aclVersion = 2
	aclNobody  = 1<<32 - 1 // in entries without an id
)

// admit gives a second group access to a file through its ACL (acl(5)), because a mode has only one group.
func admit(path string, gid int, allowed uint16) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	mode := uint16(info.Mode().Perm())
	owner, group, other := mode>>6&7, mode>>3&7, mode&7
	list := binary.LittleEndian.AppendUint32(nil, aclVersion)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{
		{aclOwner, owner, aclNobody}, {aclOwnerGroup, group, aclNobody}, {aclGroup, allowed, uint32(gid)},
		{aclMask, group | allowed, aclNobody}, {aclOther, other, aclNobody},
	} {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.perm)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	err = unix.Lsetxattr(path, "system.posix_acl_access", list, 0)
	if errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("the group %s cannot get access, because the file system of %s has no access control "+
			"lists: put the socket elsewhere, or leave out the group", readGroup, path)
	}
	return err
}
