// Was this chunk counted before, is it the last one, and so: who gets what? Everybody when the last
// worker came, the sender alone when it asks again for what is complete, nobody otherwise.
//
// A cell has the marks of the workers that came in its low half, and above how many are missing. A
// chunk in one set takes back its worker's mark in the other, so that no mark is left when the next
// round begins.
control Marks(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<64>, marks, 2 * SLOTS);
    apply {
        READ(marks, meta.at, meta.before);
        meta.seen = meta.seen | meta.before;
        if (meta.seen == ALL_ONES) {
            if (meta.before >= ONE_MISSING) {
                meta.job = meta.job + DUPLICATE;
            } else {
                meta.to = meta.again;
                meta.job = meta.job + RETRANSMISSION;
            }
            meta.before = 0;
        } else {
            meta.adds = meta.adds + meta.before;
            if (meta.before < ONE_MISSING) {
                meta.adds = meta.adds + meta.round;
            }
            meta.before = meta.before << MARKS;
            WRITE(marks, meta.at, meta.adds);
            READ(marks, meta.other, meta.theirs);
            meta.theirs = meta.theirs & meta.others;
            WRITE(marks, meta.other, meta.theirs);
            if (meta.adds < ONE_MISSING) {
                meta.job = meta.job + BROADCAST;
                meta.to = meta.job;
            }
        }
    }
}
