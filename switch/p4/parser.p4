// Takes apart what is SwitchML by its form: lengths, no fragment, no options. What goes to its UDP
// ports and is not of the form is marked; everything else is left to be forwarded. The states are
// those of a parser in any architecture: each target includes them into its own.
#define PARSER_STATES                                                                              \
    state parse_ethernet {                                                                         \
        pkt.extract(hdr.ethernet);                                                                 \
        transition select(hdr.ethernet.type) {                                                     \
            TYPE_IPV4: parse_ipv4;                                                                 \
            default: accept;                                                                       \
        }                                                                                          \
    }                                                                                              \
    state parse_ipv4 {                                                                             \
        pkt.extract(hdr.ipv4);                                                                     \
        transition select(hdr.ipv4.version_ihl) {                                                  \
            0x45: parse_protocol;                                                                  \
            default: accept;                                                                       \
        }                                                                                          \
    }                                                                                              \
    state parse_protocol {                                                                         \
        transition select(hdr.ipv4.protocol) {                                                     \
            PROTOCOL_UDP: parse_udp;                                                               \
            default: accept;                                                                       \
        }                                                                                          \
    }                                                                                              \
    state parse_udp {                                                                              \
        pkt.extract(hdr.udp);                                                                      \
        transition select(hdr.udp.dst) {                                                           \
            0xbee0: parse_fragment; 0xbee1: parse_fragment; 0xbee2: parse_fragment;                \
            0xbee3: parse_fragment; 0xbee4: parse_fragment; 0xbee5: parse_fragment;                \
            0xbee6: parse_fragment; 0xbee7: parse_fragment; 0xbee8: parse_fragment;                \
            0xbee9: parse_fragment; 0xbeea: parse_fragment; 0xbeeb: parse_fragment;                \
            0xbeec: parse_fragment; 0xbeed: parse_fragment; 0xbeee: parse_fragment;                \
            0xbeef: parse_fragment;                                                                \
            default: accept;                                                                       \
        }                                                                                          \
    }                                                                                              \
    state parse_fragment {                                                                         \
        meta.kind = MISSHAPEN;                                                                     \
        transition select(hdr.ipv4.fragment) {                                                     \
            0: parse_ip_length;                                                                    \
            0x4000: parse_ip_length;                                                               \
            default: accept;                                                                       \
        }                                                                                          \
    }                                                                                              \
    state parse_ip_length {                                                                        \
        transition select(hdr.ipv4.length) {                                                       \
            IP_LENGTH: parse_udp_length;                                                           \
            default: accept;                                                                       \
        }                                                                                          \
    }                                                                                              \
    state parse_udp_length {                                                                       \
        transition select(hdr.udp.length) {                                                        \
            UDP_LENGTH: parse_switchml;                                                            \
            default: accept;                                                                       \
        }                                                                                          \
    }                                                                                              \
    state parse_switchml {                                                                         \
        pkt.extract(hdr.switchml);                                                                 \
        transition select(hdr.switchml.type_size) {                                                \
            0x10 + SIZE_CODE: parse_lanes;                                                         \
            default: accept;                                                                       \
        }                                                                                          \
    }                                                                                              \
    state parse_lanes {                                                                            \
        meta.kind = CHUNK;                                                                         \
        meta.source = hdr.ipv4.src;                                                                \
        meta.slot = hdr.switchml.index;                                                            \
        meta.slot = meta.slot & 0x7fff;                                                            \
        meta.set = (bit<32>)hdr.switchml.index;                                                    \
        meta.set = meta.set >> 15;                                                                 \
        meta.thread = hdr.udp.dst;                                                                 \
        meta.thread = meta.thread & 0xf;                                                           \
        EXTRACT_LANES                                                                              \
        transition accept;                                                                         \
    }

#if ROWS == 1
#define EXTRACT_LANES pkt.extract(hdr.lanes0);
#define EMIT_LANES pkt.emit(hdr.lanes0);
#elif ROWS == 2
#define EXTRACT_LANES pkt.extract(hdr.lanes0); pkt.extract(hdr.lanes1);
#define EMIT_LANES pkt.emit(hdr.lanes0); pkt.emit(hdr.lanes1);
#else
#define EXTRACT_LANES                                                                              \
    pkt.extract(hdr.lanes0); pkt.extract(hdr.lanes1); pkt.extract(hdr.lanes2);                     \
    pkt.extract(hdr.lanes3); pkt.extract(hdr.lanes4); pkt.extract(hdr.lanes5);                     \
    pkt.extract(hdr.lanes6); pkt.extract(hdr.lanes7);
#define EMIT_LANES                                                                                 \
    pkt.emit(hdr.lanes0); pkt.emit(hdr.lanes1); pkt.emit(hdr.lanes2); pkt.emit(hdr.lanes3);        \
    pkt.emit(hdr.lanes4); pkt.emit(hdr.lanes5); pkt.emit(hdr.lanes6); pkt.emit(hdr.lanes7);
#endif

#define EMIT_HEADERS                                                                               \
    pkt.emit(hdr.ethernet);                                                                        \
    pkt.emit(hdr.ipv4);                                                                            \
    pkt.emit(hdr.udp);                                                                             \
    pkt.emit(hdr.switchml);                                                                        \
    EMIT_LANES
