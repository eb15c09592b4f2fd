package dhcp

import "golang.org/x/net/bpf"

// What a message is, in its first byte.
const (
	bootReply = 2 // RFC 2131, 2
	advertise = 2 // RFC 8415, 7.3
	reply     = 7
)

// filter4 lets through what a server sends to clients of DHCP, so that the kernel wakes nobody for anything else,
// however busy the LAN is. A tag of a VLAN is not in the frame that a packet socket shows: the kernel has taken it off,
// and has given the frame to the VLAN's own interface where there is one. Frames to other machines' MACs pass, too:
// there are servers that answer to the client's MAC all the same, and some interfaces hear those.
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

// filter6 is the same for DHCPv6. What has further headers before the datagram is of no server.
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

// assembled is a program for the kernel. Its instructions are constants, which a test runs.
func assembled(program []bpf.Instruction) []bpf.RawInstruction {
	raw, err := bpf.Assemble(program)
	if err != nil {
		panic("a filter of DHCP is none: " + err.Error())
	}
	return raw
}
