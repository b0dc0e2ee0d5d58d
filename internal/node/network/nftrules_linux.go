package network

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Registers of 32 bits, which concatenated keys and values fill one after the other.
const reg0, reg1, reg2 = unix.NFT_REG32_00, unix.NFT_REG32_01, unix.NFT_REG32_02

// Where IPv4 headers, and those of TCP, UDP and SCTP, have what the rules look at.
const (
	sourceOffset      = 12
	destinationOffset = 16
	portOffset        = 2
)

// chains writes every chain anew.
func (h *hostPorts) chains(node netip.Addr) {
	translate := h.chain(&nftables.Chain{Name: "translate"},
		rule(dnat(h.addressed, destination(reg0), protocol(reg1), destinationPort(reg2))),
		rule(dnat(h.ports, protocol(reg0), destinationPort(reg1))),
	)
	for name, hook := range map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "output": nftables.ChainHookOutput} {
		h.chain(base(name, nftables.ChainTypeNAT, hook, nftables.ChainPriorityNATDest), rule(toLocal(), jump(translate)))
	}
	h.chain(base("postrouting", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource),
		rule(one(source(reg0)), one(destination(reg1)), one(lookup(h.hairpin)), snat(node)),
		rule(notLoopback(expr.MetaKeyOIFNAME), inLoopback(source(reg0)), snat(node)),
	)
	h.chain(base("input", nftables.ChainTypeFilter, nftables.ChainHookInput, nftables.ChainPriorityFilter),
		rule(notLoopback(expr.MetaKeyIIFNAME), inLoopback(destination(reg0)), notEstablished(), one(&expr.Verdict{Kind: expr.VerdictDrop})),
	)
}

// chain makes a chain whose only rules are these.
func (h *hostPorts) chain(c *nftables.Chain, rules ...[]expr.Any) *nftables.Chain {
	c.Table = h.table
	h.conn.AddChain(c)
	h.conn.FlushChain(c)
	for _, exprs := range rules {
		h.conn.AddRule(&nftables.Rule{Table: h.table, Chain: c, Exprs: exprs})
	}
	return c
}

func base(name string, kind nftables.ChainType, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
	return &nftables.Chain{Name: name, Type: kind, Hooknum: hook, Priority: priority}
}

// rule strings the expressions of its parts together.
func rule(parts ...[]expr.Any) (all []expr.Any) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func one(e expr.Any) []expr.Any { return []expr.Any{e} }

func source(register uint32) expr.Any      { return address(register, sourceOffset) }
func destination(register uint32) expr.Any { return address(register, destinationOffset) }

func address(register, offset uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4}
}

func destinationPort(register uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: portOffset, Len: 2}
}

func protocol(register uint32) expr.Any {
	return &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}
}

// lookup continues when what the registers hold is in the set.
func lookup(set *nftables.Set) expr.Any {
	return &expr.Lookup{SourceRegister: reg0, SetName: set.Name, SetID: set.ID}
}

// dnat sends the packet to the address and port that the map has for the key.
func dnat(ports *nftables.Set, key ...expr.Any) []expr.Any {
	return append(key,
		&expr.Lookup{SourceRegister: reg0, DestRegister: reg0, IsDestRegSet: true, SetName: ports.Name, SetID: ports.ID},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: reg0, RegProtoMin: reg1},
	)
}

// snat makes the packet come from the address.
func snat(addr netip.Addr) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: reg0, Data: addr.AsSlice()},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: reg0},
	}
}

// toLocal continues when the packet is for the node itself.
func toLocal() []expr.Any {
	return []expr.Any{
		&expr.Fib{Register: reg0, FlagDADDR: true, ResultADDRTYPE: true},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg0, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)},
	}
}

// notLoopback continues when the packet's interface is not lo.
func notLoopback(key expr.MetaKey) []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, "lo")
	return []expr.Any{&expr.Meta{Key: key, Register: unix.NFT_REG_1}, &expr.Cmp{Op: expr.CmpOpNeq, Register: unix.NFT_REG_1, Data: name}}
}

// inLoopback continues when the address, which is loaded into reg0, is in 127.0.0.0/8.
func inLoopback(load expr.Any) []expr.Any {
	return []expr.Any{
		load,
		&expr.Bitwise{SourceRegister: reg0, DestRegister: reg0, Len: 4, Mask: []byte{255, 0, 0, 0}, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg0, Data: []byte{127, 0, 0, 0}},
	}
}

// notEstablished continues for packets of no known connection.
func notEstablished() []expr.Any {
	known := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: reg0},
		&expr.Bitwise{SourceRegister: reg0, DestRegister: reg0, Len: 4, Mask: known, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: reg0, Data: make([]byte, 4)},
	}
}

func jump(to *nftables.Chain) []expr.Any {
	return one(&expr.Verdict{Kind: expr.VerdictJump, Chain: to.Name})
}
