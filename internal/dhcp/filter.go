package dhcp

import "golang.org/x/net/bpf"

// The type of a message, in its first byte.
const (
	bootReply = 2 // RFC 2131, 2
	advertise = 2 // RFC 8415, 7.3
	reply     = 7
)

// filter4 is a socket filter for messages of DHCP servers. It keeps the kernel from waking the process for other frames
// on a busy LAN. A frame on a packet socket has no VLAN tag, because the kernel has removed it and passed the frame to
// the VLAN's interface, if there is one. The filter accepts frames to other MACs, because some servers answer to the
// client's MAC in any case, and some interfaces receive that.
func filter4() []bpf.RawInstruction {
	return assembled([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: etherIPv4, SkipTrue: 9},
		bpf.LoadAbsolute{Off: etherLength + 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protoUDP, SkipTrue: 7},
		bpf.LoadAbsolute{Off: etherLength + 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipTrue: 5}, // a fragment
		bpf.LoadMemShift{Off: etherLength},
		bpf.LoadIndirect{Off: etherLength + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: client4, SkipTrue: 2},
		bpf.LoadIndirect{Off: etherLength + udpLength, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: bootReply, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 1 << 16},
	})
}

// filter6 is filter4 for DHCPv6. It drops datagrams with extension headers, because no server sends them.
func filter6() []bpf.RawInstruction {
	return assembled([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: etherIPv6, SkipTrue: 7},
		bpf.LoadAbsolute{Off: etherLength + 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protoUDP, SkipTrue: 5},
		bpf.LoadAbsolute{Off: etherLength + ipv6Length + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: client6, SkipTrue: 3},
		bpf.LoadAbsolute{Off: etherLength + ipv6Length + udpLength, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: advertise, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: reply, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 1 << 16},
	})
}

// assembled returns the filter in the kernel's form. Its instructions are constants that a test executes.
func assembled(program []bpf.Instruction) []bpf.RawInstruction {
	raw, err := bpf.Assemble(program)
	if err != nil {
		panic("a DHCP filter is invalid: " + err.Error())
	}
	return raw
}
