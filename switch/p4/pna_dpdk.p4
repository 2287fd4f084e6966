// The switch on PNA, for DPDK's pipelines. A result goes to its receivers one pass after the other:
// a pass rewrites the addresses, mirrors the packet to the receiver's port and recirculates, the
// last one sends. Metadata does not survive a pass: the next receiver follows from the address of
// the one before and the slot (table `resume`).
//
// Mirroring sessions 0 .. 62 are ports; 63 leads nowhere.
#include <core.p4>
#include <dpdk/pna.p4>

#define REGISTER(T, name, size) Register<T, bit<32>>(size) name
#define READ(name, at, into) into = name.read(at)
#define WRITE(name, at, value) name.write(at, value)

#include "headers.p4"
#include "parser.p4"
#include "source.p4"
#include "marks.p4"
#include "missing.p4"
#include "exponents.p4"
#include "lanes.p4"
#include "loss.p4"
#include "result.p4"

const MirrorSlotId_t SLOT0 = (MirrorSlotId_t)0;
const MirrorSlotId_t SLOT1 = (MirrorSlotId_t)1;
const MirrorSlotId_t SLOT2 = (MirrorSlotId_t)2;
const MirrorSlotId_t SLOT3 = (MirrorSlotId_t)3;
const MirrorSlotId_t SLOT4 = (MirrorSlotId_t)4;
const MirrorSlotId_t SLOT5 = (MirrorSlotId_t)5;
const MirrorSlotId_t SLOT6 = (MirrorSlotId_t)6;
const MirrorSlotId_t SLOT7 = (MirrorSlotId_t)7;

parser TakeApart(packet_in pkt, out headers_t hdr, inout metadata_t meta,
              in pna_main_parser_input_metadata_t istd) {
    state start {
        meta.malformed = 0;
        meta.is_result = 0;
        transition select((PassNumberUint_t)istd.pass) {
            0: parse_ethernet;
            default: parse_result;
        }
    }
    state parse_result {
        meta.is_result = 1;
        pkt.extract(hdr.ethernet);
        pkt.extract(hdr.ipv4);
        pkt.extract(hdr.udp);
        pkt.extract(hdr.switchml);
        transition accept;
    }
    PARSER_STATES
}

control Before(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
               inout pna_pre_output_metadata_t ostd) {
    apply {}
}

control Switch(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
             inout pna_main_output_metadata_t ostd) {
    Source() source;
    Marks() marks;
    Missing() missing;
    Exponents() exponents;
    Lanes() lanes;
    Loss() loss_of_ingress;
    Loss() loss_of_egress;
    Result() result;
    InternetChecksum() checksum;

    action lose(bit<32> probability, bit<32> seed) {
        meta.loss = probability;
        meta.seed = seed;
    }
    action keep() {
        meta.loss = 0;
    }
    table loss_in {
        key = { meta.port: exact; }
        actions = { lose; keep; }
        const default_action = keep();
        size = 256;
    }
    action lose_at(bit<32> port, bit<32> probability, bit<32> seed) {
        meta.port = port;
        meta.loss = probability;
        meta.seed = seed;
    }
    table loss_out {
        key = {
            meta.group: exact;
            meta.index: exact;
        }
        actions = { lose_at; keep; }
        const default_action = keep();
        size = 4096;
    }

    action drop() {
        drop_packet();
    }
    action forward(PortId_t port) {
        send_to_port(port);
    }
    // Every port but the one it came from; what is not used leads nowhere. A packet that is dropped
    // is mirrored without its headers: the original goes to a port that nobody reads.
    action flood(MirrorSessionId_t s0, MirrorSessionId_t s1, MirrorSessionId_t s2,
                 MirrorSessionId_t s3, MirrorSessionId_t s4, MirrorSessionId_t s5,
                 MirrorSessionId_t s6, MirrorSessionId_t s7, PortId_t nowhere) {
        mirror_packet(SLOT0, s0);
        mirror_packet(SLOT1, s1);
        mirror_packet(SLOT2, s2);
        mirror_packet(SLOT3, s3);
        mirror_packet(SLOT4, s4);
        mirror_packet(SLOT5, s5);
        mirror_packet(SLOT6, s6);
        mirror_packet(SLOT7, s7);
        send_to_port(nowhere);
    }
    table forwarding {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 1024;
    }
    table flooding {
        key = { meta.port: exact; }
        actions = { flood; drop; }
        const default_action = drop();
        size = 64;
    }

    // After the receiver that the packet was just rewritten for comes this one.
    action next_receiver(bit<32> group, bit<32> index) {
        meta.group = group;
        meta.index = index;
    }
    action no_receiver() {
        meta.group = 0;
    }
    table resume {
        key = {
            hdr.ipv4.dst: exact;
            meta.slot: exact;
        }
        actions = { next_receiver; no_receiver; }
        const default_action = no_receiver();
        size = 65536;
    }

    RESULT_ACTIONS
    action last(PortId_t port, bit<48> mac, bit<32> ip, bit<16> udp, bit<48> own_mac, bit<32> own_ip) {
        address(mac, ip, udp, own_mac, own_ip);
        send_to_port(port);
    }
    action one_of_several(MirrorSessionId_t session, bit<48> mac, bit<32> ip, bit<16> udp,
                          bit<48> own_mac, bit<32> own_ip) {
        address(mac, ip, udp, own_mac, own_ip);
        mirror_packet(SLOT0, session);
        recirculate();
    }
    // What is lost on the way to its port is rewritten all the same: the next pass goes by it.
    action pass_over(bit<48> mac, bit<32> ip, bit<16> udp, bit<48> own_mac, bit<32> own_ip) {
        address(mac, ip, udp, own_mac, own_ip);
        recirculate();
    }
    table receivers {
        key = {
            meta.group: exact;
            meta.index: exact;
            meta.lost: exact;
        }
        actions = { last; one_of_several; pass_over; drop; }
        const default_action = drop();
        size = 8192;
    }

    apply {
        meta.group = 0;
        meta.index = 0;
        meta.port = (bit<32>)istd.input_port;
        if (meta.is_result == 1) {
            meta.slot = hdr.switchml.index;
            meta.slot = meta.slot & 0x7fff;
            meta.thread = hdr.udp.src;
            meta.thread = meta.thread & 0xf;
            resume.apply();
        } else if (meta.malformed == 0) {
            if (hdr.lanes0.isValid()) {
                meta.index = meta.port;
                loss_in.apply();
                loss_of_ingress.apply(hdr, meta);
                meta.index = 0;
                if (meta.lost == 0) {
                    source.apply(hdr, meta);
                    if (meta.known == 1) {
                        marks.apply(hdr, meta);
                        missing.apply(hdr, meta);
                        exponents.apply(hdr, meta);
                        lanes.apply(hdr, meta);
                    } else if (meta.known == 2) {
                        meta.group = meta.all;
                    }
                    result.apply(hdr, meta);
                }
            } else {
                meta.is_result = 2;
            }
        }
        if (meta.is_result == 2) {
            meta.dst = hdr.ethernet.dst;
            meta.dst = meta.dst & GROUP_BIT;
            if (meta.dst == 0) {
                forwarding.apply();
            } else {
                flooding.apply();
            }
        } else if (meta.group == 0) {
            drop_packet();
        } else {
            loss_out.apply();
            meta.at = meta.index;
            meta.index = meta.port;
            loss_of_egress.apply(hdr, meta);
            meta.index = meta.at;
            receivers.apply();
            hdr.udp.dst = hdr.udp.dst + meta.thread;
            hdr.ipv4.checksum = 0;
            checksum.clear();
            checksum.add(hdr.ipv4);
            hdr.ipv4.checksum = checksum.get();
        }
    }
}

control PutTogether(packet_out pkt, in headers_t hdr, in metadata_t meta,
                 in pna_main_output_metadata_t ostd) {
    apply {
        EMIT_HEADERS
    }
}

PNA_NIC(TakeApart(), Before(), Switch(), PutTogether()) main;
