// A program for bmv2 that combines packets of 32 elements slot by slot (collectives/slot_scheme.h),
// but for what becomes of two elements. A program is
//
//   #define PORT 0x51C0          SlotForm::port
//   #define COMBINE(mine, theirs) if (theirs > mine) { mine = theirs; }
//   #include "slots_v1model.p4"
//
// where `mine` is the slot's element and `theirs` the packet's. A round's first packet is kept as
// it is, so COMBINE sees later ones.
//
// Port n leads to worker n. Results leave by multicast group 1, which has a copy for every worker,
// and so do ordinary frames to an address that is not in `forwarding`.
#include <core.p4>
#include <v1model.p4>

#define ROWS 0x8000  // of registers: slot * 2 + set
#define EVERYBODY 1
#define CHUNK_BYTES 144  // of UDP, with its header
#define EVERY_LANE(DO)                                                                             \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13)        \
    DO(14) DO(15) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26)     \
    DO(27) DO(28) DO(29) DO(30) DO(31)

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<8> version_ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

header chunk_t {
    bit<16> magic;
    bit<16> index;  // slot * 2 + set
    bit<32> call;
}

#define FIELD(k) bit<32> v##k;
header lanes_t {
    EVERY_LANE(FIELD)
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    chunk_t chunk;
    lanes_t lanes;
}

struct metadata_t {
    bit<1> is_result;
}

parser TakeApart(packet_in pkt, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    state start {
        meta.is_result = 0;
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.version_ihl, hdr.ipv4.protocol) {
            (0x45, 17): parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        pkt.extract(hdr.udp);
        transition select(hdr.udp.dst, hdr.udp.length) {
            (PORT, CHUNK_BYTES): parse_chunk;
            default: accept;
        }
    }
    state parse_chunk {
        pkt.extract(hdr.chunk);
        pkt.extract(hdr.lanes);
        transition accept;
    }
}

#define DECLARE(k) register<bit<32>>(ROWS) lane##k;
#define KEEP(k) lane##k.write(at, hdr.lanes.v##k);
#define ADD(k)                                                                                     \
    lane##k.read(element, at);                                                                     \
    COMBINE(element, hdr.lanes.v##k)                                                               \
    lane##k.write(at, element);
#define RECALL(k) lane##k.read(hdr.lanes.v##k, at);

control Combine(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(1) workers;     // how many there are
    register<bit<32>>(ROWS) heard;    // whose chunks are in the result, a bit each
    register<bit<32>>(ROWS) missing;  // how many are still to come
    EVERY_LANE(DECLARE)
    bit<32> mark = 0;

    action worker(bit<32> number) {
        mark = (bit<32>)1 << (bit<8>)number;
    }
    table senders {
        key = { hdr.ipv4.src: exact; }
        actions = { worker; NoAction; }
        const default_action = NoAction();
        size = 64;
    }
    action forward(bit<9> port) {
        standard.egress_spec = port;
    }
    action flood() {
        standard.mcast_grp = EVERYBODY;
    }
    table forwarding {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; }
        const default_action = flood();
        size = 64;
    }

    apply {
        if (!hdr.lanes.isValid()) {
            forwarding.apply();
        } else {
            senders.apply();
            mark_to_drop(standard);
            if (mark != 0 && hdr.chunk.magic == PORT) {
                bit<32> at = (bit<32>)(hdr.chunk.index & (ROWS - 1));
                bit<32> before;
                bit<32> other;
                bit<32> left;
                bit<32> element;
                // A chunk in one set takes back its worker's mark in the other.
                heard.read(other, at ^ 1);
                heard.write(at ^ 1, other & ~mark);
                heard.read(before, at);
                missing.read(left, at);
                if (before & mark == 0) {
                    if (before == 0) {
                        workers.read(left, 0);
                        EVERY_LANE(KEEP)
                    } else {
                        EVERY_LANE(ADD)
                    }
                    left = left - 1;
                    heard.write(at, before | mark);
                    missing.write(at, left);
                    if (left == 0) {
                        standard.mcast_grp = EVERYBODY;
                    }
                } else if (left == 0) {
                    standard.egress_spec = standard.ingress_port;  // it has missed the result
                }
                if (left == 0) {
                    meta.is_result = 1;
                    EVERY_LANE(RECALL)
                    hdr.ethernet.src = hdr.ethernet.dst;
                    hdr.ipv4.src = hdr.ipv4.dst;
                    hdr.udp.dst = hdr.udp.src;
                    hdr.udp.src = PORT;
                    hdr.udp.checksum = 0;
                }
            }
        }
    }
}

control Copy(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action receiver(bit<48> mac, bit<32> ip) {
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = ip;
    }
    table receivers {
        key = { standard.egress_port: exact; }
        actions = { receiver; NoAction; }
        const default_action = NoAction();
        size = 64;
    }
    apply {
        if (meta.is_result == 1) {
            receivers.apply();
        } else if (standard.egress_rid != 0 && standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);  // a copy of an ordinary frame, back to where it came from
        }
    }
}

control Unchecked(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.is_result == 1,
                        { hdr.ipv4.version_ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id,
                          hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
                          hdr.ipv4.dst },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control PutTogether(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr);
    }
}

V1Switch(TakeApart(), Unchecked(), Combine(), Copy(), Checksum(), PutTogether()) main;
