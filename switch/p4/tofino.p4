// The switch on TNA, for Tofino: written to its rules, and NOT COMPILED for a chip yet. Only p4c's
// front end has read it, against p4lang's tna.p4; nobody knows whether it fits the stages of a
// pipe.
//
// How it differs from the other targets:
//   - A packet may access a register once. The marks of both sets form one pair, and so do the
//     numbers of their rounds; one table with three actions (overwrite, add, recall) decides what
//     happens to a lane.
//   - 32 elements: each lane takes one of a pipe's 48 stateful units; marks, counts and exponents
//     need the rest. More elements would need recirculation or several pipes.
//   - The chip's own random generator decides about losses on purpose, so their sequence differs
//     from that of the other targets.
//   - The packet replication engine makes the copies of a result: a group number is a multicast
//     group, and a copy's replication id is the receiver's number in that group.
#include <core.p4>
#include <tna.p4>

#define ELEMENTS 32
#include "headers.p4"

const bit<16> EVERY_PORT = 0xffff;  // multicast group of ordinary frames

// What happens to registers.
const bit<8> NOTHING = 0;
const bit<8> OPENS = 1;
const bit<8> JOINS = 2;
const bit<8> REPEATS = 3;

struct pair_t {
    bit<32> set0;
    bit<32> set1;
}

struct round_t {
    bit<32> number;
    bit<32> begun;
}

// From ingress to egress.
header bridge_t {
    bit<8> kind;
    bit<16> group;
    bit<16> thread;
}

struct tna_headers_t {
    bridge_t bridge;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    switchml_t switchml;
    lanes_t lanes0;
}

struct tna_metadata_t {
    bit<8> kind;
    bit<16> slot;
    bit<16> set;
    bit<8> known;
    bit<32> mark;
    bit<32> others;
    bit<8> last;
    bit<16> row;  // index of the pairs of marks
    bit<16> at;  // index in all other registers, which have two cells per row
    bit<16> all;
    bit<16> again;
    bit<8> guarded;
    bit<32> earlier;  // than the packet's number, by one
    bit<32> number;  // of the round that the packet found
    bit<32> distance;  // from there to the packet's; EARLIER: the packet is old
    bit<8> fresh;  // the packet begins a round by its number
    bit<32> before;  // marks of this set when the packet came
    bit<32> seen;  // the worker's mark among them
    bit<8> happens;
    bit<8> missing;
    bit<16> group;
    bit<16> draw;
    bit<16> rest;
}

parser TakeApart(packet_in pkt, out tna_headers_t hdr, out tna_metadata_t meta,
                 out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        pkt.extract(intrinsic);
        pkt.advance(PORT_METADATA_SIZE);
        meta = { ORDINARY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NOTHING, 0, 0, 0, 0 };
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.version_ihl, hdr.ipv4.protocol) {
            (0x45, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        pkt.extract(hdr.udp);
        transition select(hdr.udp.dst) {
            0xbee0 &&& 0xfff0: parse_lengths;
            default: accept;
        }
    }
    state parse_lengths {
        meta.kind = MISSHAPEN;
        transition select(hdr.ipv4.length, hdr.ipv4.fragment, hdr.udp.length) {
            (IP_LENGTH, 0 &&& 0xbfff, UDP_LENGTH): parse_switchml;
            default: accept;
        }
    }
    state parse_switchml {
        pkt.extract(hdr.switchml);
        transition select(hdr.switchml.type_size) {
            0x10 + SIZE_CODE: parse_lanes;
            default: accept;
        }
    }
    state parse_lanes {
        pkt.extract(hdr.lanes0);
        meta.kind = CHUNK;
        transition accept;
    }
}

// A guarded job's packet by its number (switch/compiled/pool.h): is it old, or does it begin a round?
control Numbers(in tna_headers_t hdr, inout tna_metadata_t meta) {
    Register<round_t, bit<16>>(2 * SLOTS) numbers;
    RegisterAction<round_t, bit<16>, bit<32>>(numbers) advance = {
        void apply(inout round_t round, out bit<32> found) {
            if (round.begun == 0) {
                found = meta.earlier;
            } else {
                found = round.number;
            }
            if (round.begun == 0 || (int<32>)(hdr.switchml.id - round.number) > 0) {
                round.number = hdr.switchml.id;
            }
            round.begun = 1;
        }
    };
    action prepare() {
        meta.earlier = hdr.switchml.id - 1;
    }
    action measure() {
        meta.distance = hdr.switchml.id - meta.number;
    }
    apply {
        prepare();
        meta.number = advance.execute(meta.at);
        measure();
        if (meta.distance != 0) {
            meta.fresh = 1;
        }
    }
}

// Reads and changes the marks of both sets at once; they form one pair. Of a guarded job, whose
// entries have all ones for `others`, those of the other set stay.
control Marks(inout tna_metadata_t meta) {
    Register<pair_t, bit<16>>(SLOTS) marks;
    RegisterAction<pair_t, bit<16>, bit<32>>(marks) in_set0 = {
        void apply(inout pair_t pair, out bit<32> before) {
            before = pair.set0;
            if (meta.fresh == 1) {
                pair.set0 = meta.mark;
            } else {
                pair.set0 = pair.set0 | meta.mark;
            }
            pair.set1 = pair.set1 & meta.others;
        }
    };
    RegisterAction<pair_t, bit<16>, bit<32>>(marks) in_set1 = {
        void apply(inout pair_t pair, out bit<32> before) {
            before = pair.set1;
            if (meta.fresh == 1) {
                pair.set1 = meta.mark;
            } else {
                pair.set1 = pair.set1 | meta.mark;
            }
            pair.set0 = pair.set0 & meta.others;
        }
    };
    action look() {
        meta.seen = meta.before & meta.mark;
    }
    apply {
        if (meta.set == 0) {
            meta.before = in_set0.execute(meta.row);
        } else {
            meta.before = in_set1.execute(meta.row);
        }
        look();
        if (meta.before == 0 || meta.fresh == 1) {
            meta.happens = OPENS;
        } else if (meta.seen == 0) {
            meta.happens = JOINS;
        } else {
            meta.happens = REPEATS;
        }
    }
}

// Counts the workers still to come, and decides who gets what.
control Missing(inout tna_metadata_t meta) {
    Register<bit<8>, bit<16>>(2 * SLOTS) missing;
    RegisterAction<bit<8>, bit<16>, bit<8>>(missing) open = {
        void apply(inout bit<8> left, out bit<8> now) {
            left = meta.last;
            now = left;
        }
    };
    RegisterAction<bit<8>, bit<16>, bit<8>>(missing) join = {
        void apply(inout bit<8> left, out bit<8> now) {
            left = left - 1;
            now = left;
        }
    };
    RegisterAction<bit<8>, bit<16>, bit<8>>(missing) ask = {
        void apply(inout bit<8> left, out bit<8> now) {
            now = left;
        }
    };
    apply {
        if (meta.happens == REPEATS) {
            meta.missing = ask.execute(meta.at);
            if (meta.missing == 0) {
                meta.group = meta.again;
            }
        } else {
            if (meta.happens == OPENS) {
                meta.missing = open.execute(meta.at);
            } else {
                meta.missing = join.execute(meta.at);
            }
            if (meta.missing == 0) {
                meta.group = meta.all;
            }
        }
    }
}

// A register that gathers one value of the packets: it overwrites, combines or recalls.
#define GATHER(T, name, field, COMBINE)                                                            \
    Register<T, bit<16>>(2 * SLOTS) name;                                                          \
    RegisterAction<T, bit<16>, T>(name) name##_set = {                                             \
        void apply(inout T value, out T now) {                                                     \
            value = field;                                                                         \
            now = value;                                                                           \
        }                                                                                          \
    };                                                                                             \
    RegisterAction<T, bit<16>, T>(name) name##_join = {                                            \
        void apply(inout T value, out T now) {                                                     \
            COMBINE(value, field)                                                                  \
            now = value;                                                                           \
        }                                                                                          \
    };                                                                                             \
    RegisterAction<T, bit<16>, T>(name) name##_recall = {                                          \
        void apply(inout T value, out T now) {                                                     \
            now = value;                                                                           \
        }                                                                                          \
    };                                                                                             \
    action name##_opens() { field = name##_set.execute(meta.at); }                                 \
    action name##_joins() { field = name##_join.execute(meta.at); }                                \
    action name##_repeats() { field = name##_recall.execute(meta.at); }                            \
    table name##_gather {                                                                          \
        key = { meta.happens: exact; }                                                             \
        actions = { name##_opens; name##_joins; name##_repeats; NoAction; }                        \
        const entries = {                                                                          \
            OPENS: name##_opens();                                                                 \
            JOINS: name##_joins();                                                                 \
            REPEATS: name##_repeats();                                                             \
        }                                                                                          \
        const default_action = NoAction();                                                         \
    }

#define SUM(value, with) value = value + with;
#define LARGER(value, with)                                                                        \
    if (with > value) {                                                                            \
        value = with;                                                                              \
    }
#define LANE(k) GATHER(bit<32>, lane##k, hdr.lanes0.v##k, SUM)
#define GATHER_LANE(k) lane##k##_gather.apply();
#define EVERY_LANE(DO)                                                                             \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) \
    DO(15) DO(16) DO(17) DO(18) DO(19) DO(20) DO(21) DO(22) DO(23) DO(24) DO(25) DO(26) DO(27)     \
    DO(28) DO(29) DO(30) DO(31)

// The sums, and the larger of the exponents. Exponents are signed, so the registers hold them plus
// 128.
control Gather(inout tna_headers_t hdr, in tna_metadata_t meta) {
    EVERY_LANE(LANE)
    GATHER(bit<8>, exponent0, hdr.switchml.e0, LARGER)
    GATHER(bit<8>, exponent1, hdr.switchml.e1, LARGER)
    action shift_exponents() {
        hdr.switchml.e0 = hdr.switchml.e0 ^ 128;
        hdr.switchml.e1 = hdr.switchml.e1 ^ 128;
    }
    action shift_back() {
        hdr.switchml.e0 = hdr.switchml.e0 ^ 128;
        hdr.switchml.e1 = hdr.switchml.e1 ^ 128;
    }
    apply {
        shift_exponents();
        exponent0_gather.apply();
        exponent1_gather.apply();
        EVERY_LANE(GATHER_LANE)
        shift_back();
    }
}

control Ingress(inout tna_headers_t hdr, inout tna_metadata_t meta,
               in ingress_intrinsic_metadata_t intrinsic,
               in ingress_intrinsic_metadata_from_parser_t from_parser,
               inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
               inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Numbers() numbers;
    Marks() marks;
    Missing() missing;
    Gather() gather;
    Random<bit<16>>() random;

    action drop() {
        for_deparser.drop_ctl = 1;
    }
    action lose(bit<16> probability) {
        meta.rest = meta.draw |-| probability;
    }
    action keep() {
        meta.rest = 1;
    }
    table loss_in {
        key = { intrinsic.ingress_port: exact; }
        actions = { lose; keep; }
        const default_action = keep();
        size = 256;
    }

    action prepare() {
        meta.slot = hdr.switchml.index & 0x7fff;
        meta.set = 15w0 ++ hdr.switchml.index[15:15];
    }
    action worker(bit<32> mark, bit<32> others, bit<8> last, bit<16> row, bit<16> first_at,
                  bit<16> all, bit<16> again, bit<8> guarded) {
        meta.known = 1;
        meta.mark = mark;
        meta.others = others;
        meta.last = last;
        meta.row = row;
        meta.at = first_at + meta.set;
        meta.all = all;
        meta.again = again;
        meta.guarded = guarded;
    }
    action upper(bit<16> all) {
        meta.known = 2;
        meta.group = all;
    }
    action stranger() {
        meta.known = 0;
    }
    table sources {
        key = {
            intrinsic.ingress_port: exact;
            hdr.ipv4.src: exact;
            meta.slot: exact;
        }
        actions = { worker; upper; stranger; }
        const default_action = stranger();
        size = 65536;
    }

    action forward(PortId_t port) {
        for_tm.ucast_egress_port = port;
    }
    table forwarding {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 1024;
    }
    action bridge(bit<8> kind) {
        hdr.bridge.setValid();
        hdr.bridge.kind = kind;
        hdr.bridge.group = meta.group;
        hdr.bridge.thread = hdr.udp.dst & 0xf;
    }

    apply {
        meta.draw = random.get();
        if (meta.kind == MISSHAPEN || from_parser.parser_err != 0) {
            drop();
        } else if (meta.kind == CHUNK) {
            prepare();
            loss_in.apply();
            if (meta.rest == 0) {
                drop();
            } else {
                sources.apply();
                if (meta.known == 1) {
                    if (meta.guarded == 1) {
                        numbers.apply(hdr, meta);
                    }
                    if ((meta.distance & EARLIER) == 0) {
                        marks.apply(meta);
                        missing.apply(meta);
                        gather.apply(hdr, meta);
                    }
                }
                if (meta.group == 0) {
                    drop();
                } else {
                    for_tm.mcast_grp_a = meta.group;
                    bridge(RESULT);
                }
            }
        } else {
            if (hdr.ethernet.dst[40:40] == 0) {
                forwarding.apply();
            } else {
                for_tm.mcast_grp_a = EVERY_PORT;
                for_tm.level2_exclusion_id = intrinsic.ingress_port;
            }
            bridge(ORDINARY);
        }
    }
}

control PutTogether(packet_out pkt, inout tna_headers_t hdr, in tna_metadata_t meta,
                    in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        pkt.emit(hdr);
    }
}

parser TakeCopyApart(packet_in pkt, out tna_headers_t hdr, out tna_metadata_t meta,
                     out egress_intrinsic_metadata_t intrinsic) {
    state start {
        pkt.extract(intrinsic);
        meta = { ORDINARY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NOTHING, 0, 0, 0, 0 };
        pkt.extract(hdr.bridge);
        transition select(hdr.bridge.kind) {
            RESULT: parse_result;
            default: accept;
        }
    }
    state parse_result {
        pkt.extract(hdr.ethernet);
        pkt.extract(hdr.ipv4);
        pkt.extract(hdr.udp);
        transition accept;
    }
}

// Addresses one copy of a result to its receiver.
control Copy(inout tna_headers_t hdr, inout tna_metadata_t meta,
             in egress_intrinsic_metadata_t intrinsic,
             in egress_intrinsic_metadata_from_parser_t from_parser,
             inout egress_intrinsic_metadata_for_deparser_t for_deparser,
             inout egress_intrinsic_metadata_for_output_port_t for_output) {
    Random<bit<16>>() random;

    action drop() {
        for_deparser.drop_ctl = 1;
    }
    action lose(bit<16> probability) {
        meta.rest = meta.draw |-| probability;
    }
    action keep() {
        meta.rest = 1;
    }
    table loss_out {
        key = { intrinsic.egress_port: exact; }
        actions = { lose; keep; }
        const default_action = keep();
        size = 256;
    }
    action receiver(bit<48> mac, bit<32> ip, bit<16> udp, bit<48> own_mac, bit<32> own_ip) {
        hdr.ethernet.dst = mac;
        hdr.ethernet.src = own_mac;
        hdr.ipv4.dst = ip;
        hdr.ipv4.src = own_ip;
        hdr.ipv4.tos = 0;
        hdr.ipv4.id = 0;
        hdr.ipv4.fragment = 0;
        hdr.ipv4.ttl = TIME_TO_LIVE;
        hdr.udp.src = hdr.udp.dst;
        hdr.udp.dst = udp + hdr.bridge.thread;
        hdr.udp.checksum = 0;
    }
    table receivers {
        key = {
            hdr.bridge.group: exact;
            intrinsic.egress_rid: exact;
        }
        actions = { receiver; drop; }
        const default_action = drop();
        size = 8192;
    }
    apply {
        meta.draw = random.get();
        if (hdr.bridge.kind == RESULT) {
            loss_out.apply();
            if (meta.rest == 0) {
                drop();
            } else {
                receivers.apply();
            }
        }
        hdr.bridge.setInvalid();
    }
}

control PutCopyTogether(packet_out pkt, inout tna_headers_t hdr, in tna_metadata_t meta,
                        in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() checksum;
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.checksum = checksum.update({ hdr.ipv4.version_ihl, hdr.ipv4.tos,
                                                  hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.fragment,
                                                  hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
                                                  hdr.ipv4.dst });
        }
        pkt.emit(hdr);
    }
}

Pipeline(TakeApart(), Ingress(), PutTogether(), TakeCopyApart(), Copy(), PutCopyTogether()) pipe;
Switch(pipe) main;
