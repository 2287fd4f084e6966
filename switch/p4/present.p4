// Chunks without elements: of OmniReduce's workers that lack the block, and credits where one worker
// gives the elements alone. They are counted, but add nothing: the first chunk of a round that has
// elements overwrites the sum, whenever it comes. A round without any has no result, but a leaf tells
// the switch above of it by a credit.
#if ROWS == 1
#define LANES_VALID hdr.lanes0.setValid();
#elif ROWS == 2
#define LANES_VALID hdr.lanes0.setValid(); hdr.lanes1.setValid();
#else
#define LANES_VALID                                                                                \
    hdr.lanes0.setValid(); hdr.lanes1.setValid(); hdr.lanes2.setValid(); hdr.lanes3.setValid();    \
    hdr.lanes4.setValid(); hdr.lanes5.setValid(); hdr.lanes6.setValid(); hdr.lanes7.setValid();
#endif

control Present(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<64>, present, 2 * SLOTS);  // 1: a chunk of the round had elements
    apply {
        READ(present, meta.at, meta.theirs);
        if (meta.seen != ALL_ONES) {
            if (meta.before == 0) {
                meta.theirs = 0;
                WRITE(present, meta.at, meta.theirs);
            }
            meta.before = meta.theirs;
        }
        if (!hdr.lanes0.isValid()) {
            meta.before = 0;
            meta.seen = ALL_ONES;
        } else if (meta.seen != ALL_ONES) {
            meta.theirs = 1;
            WRITE(present, meta.at, meta.theirs);
        }
        if (meta.to != 0) {
            if (meta.theirs != 0) {
                LANES_VALID
            } else if (meta.again < OF_LEAF) {
                meta.to = 0;
            }
        }
    }
}
