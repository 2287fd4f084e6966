// Turns the packet that completed a sum into the result for one receiver.
#define RESULT_ACTIONS                                                                             \
    action address(bit<48> mac, bit<32> ip, bit<16> udp, bit<48> own_mac, bit<32> own_ip) {        \
        hdr.ethernet.dst = mac;                                                                    \
        hdr.ethernet.src = own_mac;                                                                \
        hdr.ipv4.dst = ip;                                                                         \
        hdr.ipv4.src = own_ip;                                                                     \
        hdr.udp.dst = udp + meta.thread;                                                           \
    }

// What one receiver gets of a result where one worker takes or gives the elements alone: elements,
// or a credit. A leaf with several workers gets elements in any case, and the switch above what there
// is.
control Share(inout headers_t hdr, inout metadata_t meta) {
    apply {
        meta.shifted = 0;  // 1: it gets elements
        if (meta.receiver >= SEVERAL) {
            if (meta.receiver != ABOVE) {
                meta.shifted = 1;
            } else if (meta.theirs != 0) {  // present.p4
                meta.shifted = 1;
            }
        } else if (hdr.switchml.type_size < FROM_ONE) {
            if (hdr.alone.worker == meta.receiver) {
                meta.shifted = 1;
            }
        } else if (hdr.alone.worker != meta.receiver) {
            meta.shifted = 1;
        }
        if (hdr.switchml.type_size < FROM_ONE) {
            hdr.switchml.type_size = TO_ONE + NO_ELEMENTS;
        } else {
            hdr.switchml.type_size = FROM_ONE + NO_ELEMENTS;
        }
        hdr.ipv4.length = CREDIT_IP_LENGTH;
        hdr.udp.length = CREDIT_UDP_LENGTH;
        if (meta.shifted != 0) {
            hdr.switchml.type_size = hdr.switchml.type_size - (NO_ELEMENTS - SIZE_CODE);
            hdr.ipv4.length = ALONE_IP_LENGTH;
            hdr.udp.length = ALONE_UDP_LENGTH;
        }
    }
}

// The fields that are alike for all receivers.
control Result(inout headers_t hdr, inout metadata_t meta) {
    apply {
        meta.thread = hdr.udp.dst & 0xf;
        hdr.udp.src = hdr.udp.dst;
        hdr.udp.checksum = 0;
        hdr.ipv4.tos = 0;
        hdr.ipv4.id = 0;
        hdr.ipv4.fragment = 0;
        hdr.ipv4.ttl = TIME_TO_LIVE;
    }
}
