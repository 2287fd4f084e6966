// Turns the packet that completed a sum into the result for one receiver.
#define RESULT_ACTIONS                                                                             \
    action address(bit<48> mac, bit<32> ip, bit<16> udp, bit<48> own_mac, bit<32> own_ip) {        \
        hdr.ethernet.dst = mac;                                                                    \
        hdr.ethernet.src = own_mac;                                                                \
        hdr.ipv4.dst = ip;                                                                         \
        hdr.ipv4.src = own_ip;                                                                     \
        hdr.udp.dst = udp + meta.thread;                                                           \
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
