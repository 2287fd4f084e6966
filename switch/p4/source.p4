// Whose packet is this? A packet belongs to a job by its ingress port, its source address and its
// slot.
control Source(inout headers_t hdr, inout metadata_t meta) {
    // A worker. `offset` leads from the packet's slot to that of our registers.
    action worker(bit<32> mark, bit<32> others, bit<8> last, bit<16> offset, bit<32> all, bit<32> again) {
        meta.known = 1;
        meta.mark = mark;
        meta.others = others;
        meta.last = last;
        meta.offset = offset;
        meta.all = all;
        meta.again = again;
    }
    // The switch above: what it sends is a result for everybody here.
    action upper(bit<32> all) {
        meta.known = 2;
        meta.all = all;
    }
    action stranger() {
        meta.known = 0;
    }
    table sources {
        key = {
            meta.port: exact;
            meta.source: exact;
            meta.slot: exact;
        }
        actions = { worker; upper; stranger; }
        const default_action = stranger();
        size = 65536;
    }
    apply {
        meta.source = hdr.ipv4.src;
        meta.slot = hdr.switchml.index;
        meta.slot = meta.slot & 0x7fff;
        meta.set = hdr.switchml.index;
        meta.set = meta.set >> 15;
        sources.apply();
    }
}
