// Takes apart what is SwitchML or OmniReduce by its form: lengths, no fragment, no options. What goes
// to their UDP ports and is not of the form is marked; everything else is left to be forwarded. The
// states are those of a parser in any architecture: each target includes them into its own.
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
            SPARSE_PORT: parse_sparse_fragment;                                                    \
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
            ALONE_IP_LENGTH: parse_alone_length;                                                   \
            CREDIT_IP_LENGTH: parse_credit_length;                                                 \
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
            EVERYONE + SIZE_CODE: parse_lanes;                                                     \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_lanes {                                                                            \
        meta.index = (bit<32>)hdr.switchml.index;                                                  \
        meta.number = (bit<64>)hdr.switchml.id;                                                    \
        EXTRACT_LANES                                                                              \
        transition chunk;                                                                          \
    }                                                                                              \
    state parse_alone_length {                                                                     \
        transition select(hdr.udp.length) {                                                        \
            ALONE_UDP_LENGTH: parse_alone_type;                                                    \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_alone_type {                                                                       \
        pkt.extract(hdr.switchml);                                                                 \
        transition select(hdr.switchml.type_size) {                                                \
            TO_ONE + SIZE_CODE: parse_alone_lanes;                                                 \
            FROM_ONE + SIZE_CODE: parse_alone_lanes;                                               \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_alone_lanes {                                                                      \
        pkt.extract(hdr.alone);                                                                    \
        EXTRACT_LANES                                                                              \
        transition parse_alone;                                                                    \
    }                                                                                              \
    state parse_credit_length {                                                                    \
        transition select(hdr.udp.length) {                                                        \
            CREDIT_UDP_LENGTH: parse_credit_type;                                                  \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_credit_type {                                                                      \
        pkt.extract(hdr.switchml);                                                                 \
        transition select(hdr.switchml.type_size) {                                                \
            TO_ONE + NO_ELEMENTS: parse_credit;                                                    \
            FROM_ONE + NO_ELEMENTS: parse_credit;                                                  \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_credit {                                                                           \
        pkt.extract(hdr.alone);                                                                    \
        transition parse_alone;                                                                    \
    }                                                                                              \
    state parse_alone {                                                                            \
        meta.index = (bit<32>)hdr.switchml.index;                                                  \
        meta.index = meta.index | ALONE_INDEX;                                                     \
        meta.number = (bit<64>)hdr.switchml.id;                                                    \
        transition chunk;                                                                          \
    }                                                                                              \
    state chunk {                                                                                  \
        meta.kind = CHUNK;                                                                         \
        meta.source = hdr.ipv4.src;                                                                \
        transition accept;                                                                         \
    }                                                                                              \
    state parse_sparse_fragment {                                                                  \
        transition select(hdr.ipv4.fragment) {                                                     \
            0: parse_sparse_length;                                                                \
            0x4000: parse_sparse_length;                                                           \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_sparse_length {                                                                    \
        transition select(hdr.ipv4.length) {                                                       \
            BLOCK_IP_LENGTH: parse_block_length;                                                   \
            EMPTY_IP_LENGTH: parse_empty_length;                                                   \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_block_length {                                                                     \
        transition select(hdr.udp.length) {                                                        \
            BLOCK_UDP_LENGTH: parse_block;                                                         \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_block {                                                                            \
        pkt.extract(hdr.sparse);                                                                   \
        EXTRACT_LANES                                                                              \
        transition parse_sparse;                                                                   \
    }                                                                                              \
    state parse_empty_length {                                                                     \
        transition select(hdr.udp.length) {                                                        \
            EMPTY_UDP_LENGTH: parse_empty;                                                         \
            default: misshapen;                                                                    \
        }                                                                                          \
    }                                                                                              \
    state parse_empty {                                                                            \
        pkt.extract(hdr.sparse);                                                                   \
        transition parse_sparse;                                                                   \
    }                                                                                              \
    state parse_sparse {                                                                           \
        meta.index = (bit<32>)hdr.sparse.index;                                                    \
        meta.index = meta.index | SPARSE_INDEX;                                                    \
        meta.number = (bit<64>)hdr.sparse.round;                                                   \
        transition select(hdr.sparse.type) {                                                       \
            SPARSE_INT32: chunk;                                                                   \
            default: misshapen;                                                                    \
        }                                                                                          \
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
    pkt.emit(hdr.alone);                                                                           \
    pkt.emit(hdr.sparse);                                                                          \
    EMIT_LANES
