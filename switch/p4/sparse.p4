// OmniReduce's part of a chunk: the least of the next blocks, and whether there is a block at all.
// Workers without the round's block are counted, but add nothing; the first block of a round
// overwrites the sum, whenever it comes. A round without any block has no result.
#if ROWS == 1
#define BLOCK_VALID hdr.lanes0.setValid();
#elif ROWS == 2
#define BLOCK_VALID hdr.lanes0.setValid(); hdr.lanes1.setValid();
#else
#define BLOCK_VALID                                                                                \
    hdr.lanes0.setValid(); hdr.lanes1.setValid(); hdr.lanes2.setValid(); hdr.lanes3.setValid();    \
    hdr.lanes4.setValid(); hdr.lanes5.setValid(); hdr.lanes6.setValid(); hdr.lanes7.setValid();
#endif

control Sparse(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<32>, least, 2 * SLOTS);
    REGISTER(bit<64>, summed, 2 * SLOTS);  // the number of the round whose blocks the sum has
    apply {
        if (meta.seen != ALL_ONES) {
            if (meta.before == 0) {
                WRITE(least, meta.at, hdr.sparse.next);
            } else {
                READ(least, meta.at, meta.old);
                if (hdr.sparse.next < meta.old) {
                    WRITE(least, meta.at, hdr.sparse.next);
                }
            }
        }
        READ(summed, meta.at, meta.theirs);
        if (!hdr.lanes0.isValid()) {
            meta.before = 0;
            meta.seen = ALL_ONES;
        } else if (meta.seen != ALL_ONES) {
            meta.before = ONE_MISSING;
            if (meta.theirs != meta.number) {
                WRITE(summed, meta.at, meta.number);
                meta.theirs = meta.number;
                meta.before = 0;
            }
        }
        if (meta.to != 0) {
            if (meta.theirs != meta.number) {
                meta.to = 0;
            } else {
                READ(least, meta.at, hdr.sparse.next);
                BLOCK_VALID
                hdr.ipv4.length = BLOCK_IP_LENGTH;
                hdr.udp.length = BLOCK_UDP_LENGTH;
            }
        }
    }
}
