// The switch on v1model (bmv2). The multicast engine makes the copies of a result: a group number
// is a multicast group, and a copy's replication id is the receiver's number in that group.
#include <core.p4>
#include <v1model.p4>

#define REGISTER(T, name, size) register<T>(size) name
#define READ(name, at, into) name.read(into, at)
#define WRITE(name, at, value) name.write(at, value)
#define COUNTER(name, size) counter(size, CounterType.packets) name
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

const bit<16> EVERY_PORT = 0xffff;  // multicast group of ordinary frames

parser TakeApart(packet_in pkt, out headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard) {
    state start {
        meta.to = 0;
        transition parse_ethernet;
    }
    PARSER_STATES
}

control Switch(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Source() source;
    Marks() marks;
    Exponents() exponents;
    Sparse() sparse;
    Present() present;
    Sums() sums;
    Loss() loss;
    Result() result;

    REGISTER(bit<32>, probability, MOST_PORTS);  // of loss at the ingress port
    COUNTER(port_counters, MOST_PORTS * PORT_COUNTERS);
    COUNTER(job_counters, MOST_JOBS * JOB_COUNTERS);

    action forward(bit<32> port) {
        standard.egress_spec = (bit<9>)port;
    }
    action unknown() {
        COUNT_AT_PORT(meta.way, UNKNOWN)
        mark_to_drop(standard);
    }
    table forwarding {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; unknown; }
        const default_action = unknown();
        size = 1024;
    }

    apply {
        meta.way = (bit<32>)standard.ingress_port;
        if (standard.parser_error != error.NoError || meta.kind == MISSHAPEN ||
            (hdr.ipv4.isValid() && standard.packet_length < 14 + (bit<32>)hdr.ipv4.length)) {
            COUNT_AT_PORT(meta.way, MALFORMED)
            mark_to_drop(standard);
        } else if (meta.kind == CHUNK) {
            READ(probability, meta.way, meta.loss);
            loss.apply(hdr, meta);
            if (meta.loss != 0) {
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
                mark_to_drop(standard);
            } else {
                result.apply(hdr, meta);
                standard.mcast_grp = (bit<16>)meta.to;
            }
        } else {
            meta.dst = hdr.ethernet.dst;
            meta.dst = meta.dst & GROUP_BIT;
            if (meta.dst == 0) {
                forwarding.apply();
            } else {
                standard.mcast_grp = EVERY_PORT;
            }
        }
    }
}

control Copy(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Loss() loss;
    Share() share;
    REGISTER(bit<32>, probability, MOST_PORTS);  // of loss at the egress port
    COUNTER(copies, MOST_JOBS * JOB_COUNTERS);
    COUNTER(port_counters, MOST_PORTS * PORT_COUNTERS);

    RESULT_ACTIONS
    action receiver(bit<48> mac, bit<32> ip, bit<16> udp, bit<48> own_mac, bit<32> own_ip,
                    bit<32> job) {
        address(mac, ip, udp, own_mac, own_ip);
        meta.job = job;
    }
    table receivers {
        key = {
            meta.to: exact;
            meta.receiver: exact;
        }
        actions = { receiver; NoAction; }
        const default_action = NoAction();
        size = 8192;
    }

    apply {
        if (meta.to != 0) {
            READ(probability, (bit<32>)standard.egress_port, meta.loss);
            meta.way = (bit<32>)standard.egress_port + MOST_PORTS;
            loss.apply(hdr, meta);
            if (meta.loss != 0) {
                COUNT_AT_PORT((bit<32>)standard.egress_port, LOST)
                mark_to_drop(standard);
            } else {
                meta.receiver = standard.egress_rid;
                receivers.apply();
                if (hdr.alone.isValid()) {
                    share.apply(hdr, meta);
                }
                // Cuts off the sender's trailing bytes, and the elements of a credit.
                truncate(14 + (bit<32>)hdr.ipv4.length);
                COUNT(copies, meta.job);
            }
        } else if (standard.instance_type == 5 && standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);  // a copy of a flooded frame, back to where it came from
        }
    }
}

control Unchecked(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Checksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.to != 0,
                        { hdr.ipv4.version_ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id,
                          hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
                          hdr.ipv4.dst },
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control PutTogether(packet_out pkt, in headers_t hdr) {
    apply {
        EMIT_HEADERS
    }
}

V1Switch(TakeApart(), Unchecked(), Switch(), Copy(), Checksum(), PutTogether()) main;
