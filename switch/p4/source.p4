// Whose packet is this? A packet belongs to a job by its ingress port, its source address and its
// slot.
control Source(inout headers_t hdr, inout metadata_t meta) {
    // A worker; `row`: of registers, of the first of its slot's two sets.
    action worker(bit<32> mark, bit<32> others, bit<8> last, bit<32> row, bit<32> all,
                  bit<32> again, bit<32> job) {
        meta.mark = mark;
        meta.others = others;
        meta.last = last;
        meta.at = row + meta.set;
        meta.all = all;
        meta.again = again;
        meta.job = job;
    }
    // The switch above: what it sends is a result for everybody here.
    action upper(bit<32> all, bit<32> job) {
        meta.kind = FROM_UPPER;
        meta.group = all;
        meta.job = job;
    }
    action stranger() {
        meta.kind = OF_NO_JOB;
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
        sources.apply();
    }
}
