// The switch on PNA, for DPDK's pipelines. A result goes to its receivers one pass after the other:
// a pass rewrites the addresses, mirrors the packet to the receiver's port and recirculates, the
// last one sends. Metadata survives a pass (PNA leaves that open; on DPDK a packet keeps its thread,
// and the thread its metadata): meta.to says who is next.
//
// Mirroring sessions 0 .. 62 are ports; 63 leads nowhere. Sessions 64 .. 126 are the same ports for
// credits: the copy ends before the elements.
#include <core.p4>
#include <dpdk/pna.p4>

#define REGISTER(T, name, size) Register<T, bit<32>>(size) name
#define READ(name, at, into) into = name.read(at)
#define WRITE(name, at, value) name.write(at, value)
#define COUNTER(name, size) Counter<bit<64>, bit<32>>(size, PNA_CounterType_t.PACKETS) name
#define COUNT(name, at) name.count(at)

#include "headers.p4"
#include "parser.p4"
#include "source.p4"
#include "marks.p4"
#include "exponents.p4"
#include "sparse.p4"
#include "present.p4"
#include "sums.p4"
#include "loss.p4"
#include "result.p4"

const MirrorSlotId_t SLOT = (MirrorSlotId_t)0;
const MirrorSessionId_t NOWHERE = (MirrorSessionId_t)63;
const bit<32> NOBODY = 0xffffffff;  // no receiver

parser TakeApart(packet_in pkt, out headers_t hdr, inout metadata_t meta,
              in pna_main_parser_input_metadata_t istd) {
    state start {
        transition select((PassNumberUint_t)istd.pass) {
            0: parse_ethernet;
            default: parse_result;
        }
    }
    state parse_result {
        pkt.extract(hdr.ethernet);
        pkt.extract(hdr.ipv4);
        transition select(meta.kind) {
            RESULT_ALONE: parse_result_alone;
            default: accept;
        }
    }
    state parse_result_alone {
        pkt.extract(hdr.udp);
        pkt.extract(hdr.switchml);
        pkt.extract(hdr.alone);
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
    Exponents() exponents;
    Sparse() sparse;
    Present() present;
    Sums() sums;
    Loss() loss;
    Result() result;
    Share() share;
    REGISTER(bit<32>, probability, MOST_PORTS);  // of loss where frames come in
    COUNTER(port_counters, MOST_PORTS * PORT_COUNTERS);
    COUNTER(job_counters, MOST_JOBS * JOB_COUNTERS);

    action drop() {
        drop_packet();
    }
    action forward(PortId_t port) {
        send_to_port(port);
    }
    action unknown() {
        meta.to = 0;
    }
    table forwarding {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; unknown; }
        const default_action = unknown();
        size = 1024;
    }
    // To the port that stands for every port but the one it came from.
    table flooding {
        key = { meta.way: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 64;
    }

    RESULT_ACTIONS
    // The only receiver, or the first of several. `checksum`: of the IPv4 header that leaves; `job`:
    // the row of counters for copies; `next`: the receiver after this one; `leaving`: what meta.leaving is.
    action only(PortId_t port, bit<32> leaving, bit<16> number, bit<48> mac, bit<32> ip, bit<16> checksum, bit<16> udp,
                bit<48> own_mac, bit<32> own_ip, bit<32> job) {
        address(mac, ip, udp, own_mac, own_ip);
        hdr.ipv4.checksum = checksum;
        send_to_port(port);
        meta.leaving = leaving;
        meta.receiver = number;
        meta.to = 0;
        meta.job = job;
    }
    action first(MirrorSessionId_t session, bit<32> leaving, bit<16> number, bit<48> mac, bit<32> ip, bit<16> checksum,
                 bit<16> udp, bit<48> own_mac, bit<32> own_ip, bit<32> job, bit<32> next) {
        address(mac, ip, udp, own_mac, own_ip);
        hdr.ipv4.checksum = checksum;
        mirror_packet(SLOT, session);
        recirculate();
        meta.leaving = leaving;
        meta.receiver = number;
        meta.to = next;
        meta.job = job;
        meta.kind = RESULT;
    }
    // Of the others. What is alike for all receivers stays.
    action following(MirrorSessionId_t session, bit<32> leaving, bit<16> number, bit<48> mac, bit<32> ip,
                     bit<16> checksum, bit<32> next) {
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = ip;
        hdr.ipv4.checksum = checksum;
        mirror_packet(SLOT, session);
        recirculate();
        meta.leaving = leaving;
        meta.receiver = number;
        meta.to = next;
    }
    action final(PortId_t port, bit<32> leaving, bit<16> number, bit<48> mac, bit<32> ip, bit<16> checksum) {
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = ip;
        hdr.ipv4.checksum = checksum;
        send_to_port(port);
        meta.leaving = leaving;
        meta.receiver = number;
        meta.to = 0;
    }
    table receivers {
        key = { meta.to: exact; }
        actions = { only; first; following; final; drop; }
        const default_action = drop();
        size = 32768;
    }

    // A result keeps its elements for later receivers, so that only a copy can be a credit. After
    // the last one the packet itself is for nobody.
    action credit(MirrorSessionId_t session) {
        mirror_packet(SLOT, session);
        recirculate();
    }
    table credits {
        key = { meta.way: exact; }  // out
        actions = { credit; drop; }
        const default_action = drop();
        size = 64;
    }

    apply {
        if (meta.kind == CHUNK) {
            meta.way = (bit<32>)istd.input_port;
            READ(probability, meta.way, meta.loss);
            loss.apply(hdr, meta);
            if (meta.loss != 0) {
                meta.to = 0;
                COUNT_AT_PORT(meta.way, LOST)
            } else {
                source.apply(hdr, meta);
                if (meta.kind == OF_NO_JOB) {
                    COUNT_AT_PORT(meta.way, STRANGER)
                } else {
                    marks.apply(hdr, meta);
                    COUNT(job_counters, meta.job);
                    if (hdr.sparse.isValid()) {
                        sparse.apply(hdr, meta);
                        present.apply(hdr, meta);
                    } else {
                        exponents.apply(hdr, meta);
                        if (hdr.alone.isValid()) {
                            present.apply(hdr, meta);
                        }
                    }
                    sums.apply(hdr, meta);
                    if (meta.kind == FROM_UPPER) {
                        meta.to = meta.again;
                    }
                }
            }
            if (meta.to == 0) {
                drop_packet();
            } else {
                result.apply(hdr, meta);
            }
        } else if (meta.kind < RESULT) {
            meta.to = 0;
            meta.way = (bit<32>)istd.input_port;
            if (meta.kind == MISSHAPEN) {
                COUNT_AT_PORT(meta.way, MALFORMED)
                drop_packet();
            } else {
                meta.dst = hdr.ethernet.dst;
                meta.dst = meta.dst & GROUP_BIT;
                if (meta.dst != 0) {
                    flooding.apply();
                } else if (!forwarding.apply().hit) {
                    COUNT_AT_PORT(meta.way, UNKNOWN)
                    drop_packet();
                }
            }
        }
        if (meta.to != 0) {
            if (receivers.apply().hit) {
                if (hdr.alone.isValid()) {
                    share.apply(hdr, meta);
                    // The checksum is that of IP_LENGTH: it falls as the length rises, modulo 0xffff.
                    if (hdr.ipv4.length == ALONE_IP_LENGTH) {
                        if (hdr.ipv4.checksum < ALONE_IP_LENGTH - IP_LENGTH) {
                            hdr.ipv4.checksum = hdr.ipv4.checksum - 1;
                        }
                        hdr.ipv4.checksum = hdr.ipv4.checksum - (ALONE_IP_LENGTH - IP_LENGTH);
                    } else {
                        if (hdr.ipv4.checksum >= 0xffff - (IP_LENGTH - CREDIT_IP_LENGTH)) {
                            hdr.ipv4.checksum = hdr.ipv4.checksum + 1;
                        }
                        hdr.ipv4.checksum = hdr.ipv4.checksum + (IP_LENGTH - CREDIT_IP_LENGTH);
                        meta.way = meta.leaving & 0xffff;
                        credits.apply();
                        if (meta.to == 0) {
                            meta.to = NOBODY;
                        }
                    }
                    meta.kind = RESULT_ALONE;
                }
                if (meta.leaving >= MAY_BE_LOST) {
                    meta.way = meta.leaving & 0xffff;
                    meta.loss = meta.leaving >> 16;
                    loss.apply(hdr, meta);
                    if (meta.loss == 0) {
                        COUNT(job_counters, meta.job);
                    } else {
                        meta.way = meta.way - MOST_PORTS;
                        COUNT_AT_PORT(meta.way, LOST)
                        // It is rewritten all the same: the next pass goes by it.
                        if (meta.to != 0) {
                            mirror_packet(SLOT, NOWHERE);
                        } else {
                            drop_packet();
                        }
                    }
                } else {
                    COUNT(job_counters, meta.job);
                }
            }
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
