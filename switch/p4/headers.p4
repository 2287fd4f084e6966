// What is on the wire, and what is known of a packet on its way through the switch. The formats are
// described in switch/wire/switchml.h and switch/wire/sparse.h; tests hold them against each other.
//
// ELEMENTS is 32, 64 or 256. Elements are grouped in headers of 32: no header, and not the metadata
// either, may be longer than 255 bytes on DPDK.
#ifndef GHOSTRANK_HEADERS
#define GHOSTRANK_HEADERS

#ifndef ELEMENTS
#error "compile with -DELEMENTS=32, 64 or 256"
#endif

#if ELEMENTS == 32
#define SIZE_CODE 0
#define ROWS 1
#define IP_LENGTH 166
#elif ELEMENTS == 64
#define SIZE_CODE 1
#define ROWS 2
#define IP_LENGTH 294
#else
#define SIZE_CODE 3
#define ROWS 8
#define IP_LENGTH 1062
#endif
#define UDP_LENGTH (IP_LENGTH - 20)
// Of functions in which one worker gives or takes the elements alone: with elements, and credits.
#define ALONE_IP_LENGTH (IP_LENGTH + 2)
#define ALONE_UDP_LENGTH (UDP_LENGTH + 2)
#define CREDIT_IP_LENGTH 40
#define CREDIT_UDP_LENGTH 20
// Of OmniReduce's packets, with a block and without.
#define BLOCK_IP_LENGTH (IP_LENGTH + 1)
#define BLOCK_UDP_LENGTH (UDP_LENGTH + 1)
#define EMPTY_IP_LENGTH 39
#define EMPTY_UDP_LENGTH 19

// Slots of all jobs of a switch together, a power of two. Slots of 256 elements are larger.
#if ELEMENTS == 256
#define SLOTS 4096
#else
#define SLOTS 16384
#endif

const bit<16> TYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;
// The first byte of SwitchML's header, plus SIZE_CODE or NO_ELEMENTS.
#define EVERYONE 0x10
#define TO_ONE 0x20
#define FROM_ONE 0x30
#define NO_ELEMENTS 7
const bit<16> SPARSE_PORT = 0xbe80;
const bit<8> SPARSE_INT32 = 1;
const bit<8> TIME_TO_LIVE = 64;
const bit<48> GROUP_BIT = 0x010000000000;  // of an Ethernet address

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<8> version_ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> id;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

header switchml_t {
    bit<8> type_size;
    bit<8> job;
    bit<32> id;
    bit<16> index;  // set in bit 15, slot below
    bit<8> e0;
    bit<8> e1;
}

// Follows it in packets of the types TO_ONE and FROM_ONE.
header alone_t {
    bit<16> worker;  // that takes or gives the elements alone
}

// OmniReduce's.
header sparse_t {
    bit<32> round;
    bit<16> index;  // as above
    bit<32> next;  // block
    bit<8> type;
}

header lanes_t {
    bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3; bit<32> v4; bit<32> v5; bit<32> v6; bit<32> v7;
    bit<32> v8; bit<32> v9; bit<32> v10; bit<32> v11; bit<32> v12; bit<32> v13; bit<32> v14; bit<32> v15;
    bit<32> v16; bit<32> v17; bit<32> v18; bit<32> v19; bit<32> v20; bit<32> v21; bit<32> v22; bit<32> v23;
    bit<32> v24; bit<32> v25; bit<32> v26; bit<32> v27; bit<32> v28; bit<32> v29; bit<32> v30; bit<32> v31;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    switchml_t switchml;
    alone_t alone;
    sparse_t sparse;
    lanes_t lanes0;
#if ROWS > 1
    lanes_t lanes1;
#endif
#if ROWS > 2
    lanes_t lanes2;
    lanes_t lanes3;
    lanes_t lanes4;
    lanes_t lanes5;
    lanes_t lanes6;
    lanes_t lanes7;
#endif
}

// What is counted, in rows; switch/compiled/counters.h says what they are.
#define MOST_PORTS 256
#define MOST_JOBS 256
#define PORT_COUNTERS 4  // a row per port
#define MALFORMED 0
#define STRANGER 1
#define LOST 2
#define UNKNOWN 3
#define COUNT_AT_PORT(port, which)                                                                 \
    meta.count = (port) * PORT_COUNTERS;                                                           \
    meta.count = meta.count + which;                                                               \
    COUNT(port_counters, meta.count);
#define JOB_COUNTERS 8  // a row per job
#define DUPLICATE 1  // 0: collected
#define BROADCAST 2
#define RETRANSMISSION 3
#define FROM_ABOVE 4
// 5: copies; their row comes with the receiver

// DPDK reads and writes eight bytes at a time, wherever a field begins; one that lies within eight
// bytes of another that was just written has to wait for it. So fields that are in use at the same
// time lie apart, with others between them.
struct metadata_t {
    // The keys of tables.
    bit<32> way;        // the port where it came in; MOST_PORTS more: where a copy leaves
    bit<32> source;     // IPv4
    bit<32> index;      // as in the packet: set and slot; more: SPARSE_INDEX or ALONE_INDEX
    bit<48> dst;
    bit<8> kind;        // what the parser saw and, of a chunk of no worker, what the table says
    bit<32> shifted;    // a field shifted; then: 1 where a receiver gets elements (result.p4)

    // From the table of sources.
    bit<64> adds;       // a mark, less one missing (marks.p4); 0: not from a worker
    bit<64> others;     // all marks but its own, and every bit above
    bit<64> seen;       // the same; then: ALL_ONES where it was counted before
    bit<64> round;      // so many missing as there are workers
    bit<32> at;         // row of registers
    bit<32> again;      // whom a repeated result goes to; of a result from above: whom it goes to
    bit<32> other;      // row of the slot's other set; GUARDED: its job's rounds have numbers
    bit<32> job;        // a row of counters of the job; what is collected by every worker goes to it

    // Decided on the way.
    bit<64> before;     // the cell of marks as it was; then: 0 where there is nothing to add to
    bit<64> theirs;     // the other set's cell; of a guarded job: the number of the set's round
    bit<64> number;     // of the packet
    bit<32> to;         // who gets a result; 0: nobody. pna: who gets the next copy
    bit<16> thread;     // low four bits of the UDP port
    bit<32> loss;       // probability in 1/65536; then: 0 where it is not lost
    bit<32> dice;
    bit<32> leaving;    // pna: the way out and, 16 bits above, the probability of loss there
    bit<32> count;      // of counters: which
    bit<16> receiver;   // number of the worker that gets a copy; or SEVERAL, or ABOVE
    bit<8> e0;          // the largest so far, plus 128
    bit<32> old;
    bit<8> e1;
}

#define MARKS 32  // bits of a cell of marks
#define ONE_MISSING 0x100000000
#define MAY_BE_LOST 0x10000  // or more: what meta.leaving is where there is a probability
#define ALL_ONES 0xffffffffffffffff

#define GUARDED 0xffffffff
#define BEGUN 0x100000000
#define ANSWERED 0x10000000000  // the registers have what the switch above has said
#define SPARSE_INDEX 0x10000
#define ALONE_INDEX 0x20000
#define SEVERAL 0x8000    // or more: it is a leaf with several workers
#define ABOVE 0xffff      // it is the switch above
#define OF_LEAF 0x10000  // or more: what meta.again is of a leaf's worker, its group plus this
#define EARLIER 0x80000000  // bit of the difference to a later number

#define ORDINARY 0  // kinds
#define MISSHAPEN 1  // to SwitchML's port, but not of its form
#define RESULT 2     // pna: on its way to the next receiver
#define RESULT_ALONE 3  // the same, of TO_ONE and FROM_ONE
#define FROM_UPPER 4 // a chunk by its form; a result from the switch above
#define OF_NO_JOB 5  // a chunk by its form
#define CHUNK 6  // by its form, whosever it is

#endif
