// Whose packet is this? A packet belongs to a job by its ingress port, its source address and its
// slot. There is an entry for each set of a slot, so that nothing is computed here.
control Source(inout headers_t hdr, inout metadata_t meta) {
    action worker(bit<64> adds, bit<64> others, bit<64> round, bit<32> at, bit<32> other,
                  bit<32> again, bit<32> job) {
        meta.adds = adds;
        meta.others = others;
        meta.seen = others;
        meta.round = round;
        meta.at = at;
        meta.other = other;
        meta.again = again;
        meta.job = job;
        meta.to = 0;
    }
    // The switch above: what it sends is a result for everybody here, the group of the row `job`.
    action upper(bit<32> at, bit<32> other, bit<32> job) {
        meta.adds = 0;
        meta.seen = ALL_ONES;
        meta.kind = FROM_UPPER;
        meta.at = at;
        meta.other = other;
        meta.again = job;
        meta.job = job;
        meta.to = 0;
    }
    action stranger() {
        meta.to = 0;
        meta.kind = OF_NO_JOB;
    }
    table sources {
        key = {
            meta.way: exact;
            meta.source: exact;
            meta.index: exact;
        }
        actions = { worker; upper; stranger; }
        const default_action = stranger();
        size = 131072;
    }
    apply {
        sources.apply();
    }
}
