// Takes apart what is SwitchML by its form: lengths, no fragment, no options. What goes to its UDP
// ports and is not of the form is marked; everything else is left to be forwarded. The states are
// those of a parser in any architecture: each target includes them into its own.
#define PARSER_STATES                                                                              \
    state ordinary {                                                                               \
        meta.kind = ORDINARY;                                                                      \
        transition accept;                                                                         \
    }                                                                                              \
    state misshapen {                                                                              \
        meta.kind = MISSHAPEN;                                                                     \
        transition accept;                                                                         \
    }                                                                                              \
    state parse_ethernet {                                                                         \
        pkt.extract(hdr.ethernet);                                                                 \
        transition select(hdr.ethernet.type) {                                                     \
            TYPE_IPV4: parse_ipv4;                                                                 \
            default: ordinary;                                                                     \
        }                                                                                          \
    }                                                                                              \
    state parse_ipv4 {                                                                             \
        pkt.extract(hdr.ipv4);                                                                     \
        transition select(hdr.ipv4.version_ihl) {                                                  \
            0x45: parse_protocol;                                                                  \
            default: ordinary;                                                                     \
        }                                                                                          \
    }                                                                                              \
    state parse_protocol {                                                                         \
        transition select(hdr.ipv4.protocol) {                                                     \
            PROTOCOL_UDP: parse_udp;                                                               \
            default: ordinary;                                                                     \
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
            default: ordinary;                                                                     \
        }                                                                                          \
    }                                                                                              \
    state parse_fragment {                                                                         \
        transition select(hdr.ipv4.fragment) {                                                     \
            0: parse_ip_length;                                                                    \
            0x4000: parse_ip_length;                                                               \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_ip_length {                                                                        \
        transition select(hdr.ipv4.length) {                                                       \
            IP_LENGTH: parse_udp_length;                                                           \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_udp_length {                                                                       \
        transition select(hdr.udp.length) {                                                        \
            UDP_LENGTH: parse_switchml;                                                            \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_switchml {                                                                         \
        pkt.extract(hdr.switchml);                                                                 \
        transition select(hdr.switchml.type_size) {                                                \
            0x10 + SIZE_CODE: parse_lanes;                                                         \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_lanes {                                                                            \
        meta.source = hdr.ipv4.src;                                                                \
        meta.index = hdr.switchml.index;                                                           \
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
