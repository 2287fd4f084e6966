// The switch on v1model (bmv2). Copies are the multicast engine's: group numbers are multicast
// groups, and the replication id of a copy is the receiver's number in its group.
#include <core.p4>
#include <v1model.p4>

#define REGISTER(T, name, size) register<T>(size) name
#define READ(name, at, into) name.read(into, at)
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

const bit<16> EVERY_PORT = 0xffff;  // multicast group of ordinary frames

parser TakeApart(packet_in pkt, out headers_t hdr, inout metadata_t meta,
              inout standard_metadata_t standard) {
    state start {
        meta.malformed = 0;
        transition parse_ethernet;
    }
    PARSER_STATES
}

control Switch(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    Source() source;
    Marks() marks;
    Missing() missing;
    Exponents() exponents;
    Lanes() lanes;
    Loss() loss;
    Result() result;

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

    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<32> port) {
        standard.egress_spec = (bit<9>)port;
    }
    table forwarding {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        const default_action = drop();
    }

    apply {
        if (standard.parser_error != error.NoError) {
            drop();
        } else if (meta.malformed == 1) {
            drop();
        } else if (hdr.lanes0.isValid()) {
            meta.port = (bit<32>)standard.ingress_port;
            meta.index = meta.port;
            meta.group = 0;
            loss_in.apply();
            loss.apply(hdr, meta);
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
            }
            if (meta.group == 0) {
                drop();
            } else {
                result.apply(hdr, meta);
                standard.mcast_grp = (bit<16>)meta.group;
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

    action lose(bit<32> probability, bit<32> seed) {
        meta.loss = probability;
        meta.seed = seed;
    }
    action keep() {
        meta.loss = 0;
    }
    table loss_out {
        key = { meta.index: exact; }
        actions = { lose; keep; }
        const default_action = keep();
        size = 256;
    }
    RESULT_ACTIONS
    table receivers {
        key = {
            meta.group: exact;
            meta.index: exact;
        }
        actions = { address; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    apply {
        if (hdr.lanes0.isValid()) {
            meta.index = (bit<32>)standard.egress_port;
            loss_out.apply();
            loss.apply(hdr, meta);
            meta.index = (bit<32>)standard.egress_rid;
            if (meta.lost == 1) {
                mark_to_drop(standard);
            } else {
                receivers.apply();
                hdr.udp.dst = hdr.udp.dst + meta.thread;
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
        update_checksum(hdr.lanes0.isValid(),
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
