// Was this chunk counted before, is it the last one, and so: who gets what? Everybody when the last
// worker came, the sender alone when it asks again for what is complete, nobody otherwise.
//
// A cell has the marks of the workers that came in its low half, and above how many are missing. A
// chunk in one set takes back its worker's mark in the other, so that no mark is left when the next
// round begins.
//
// A guarded job's rounds are told apart by the numbers of their packets (switch/compiled/pool.h). Its marks
// stay: a later number than the set's begins the next round, an earlier one is of an old packet,
// which is treated as one that was counted before.
//
// A guarded leaf keeps the answer of the switch above in place of its sum: the answer of a complete
// round is written as a first chunk is, and not sent again if it comes twice. Who asks again for
// what is complete gets it from here; until it has come, the sum goes up once more.
control Marks(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<64>, marks, 2 * SLOTS);
    REGISTER(bit<64>, numbers, 2 * SLOTS);  // of guarded rounds, plus BEGUN once there was one
    apply {
        READ(marks, meta.at, meta.before);
        if (meta.kind == FROM_UPPER) {
            if (meta.other == GUARDED) {
                meta.number = meta.number | BEGUN;
                READ(numbers, meta.at, meta.theirs);
                if (meta.theirs == meta.number) {
                    if (meta.before < ONE_MISSING) {
                        meta.number = meta.number + ANSWERED;
                        WRITE(numbers, meta.at, meta.number);
                        meta.seen = 0;
                    }
                } else {
                    meta.number = meta.number + ANSWERED;
                    if (meta.theirs == meta.number) {
                        meta.again = 0;
                    }
                }
            }
            meta.before = 0;
        } else {
            if (meta.other == GUARDED) {
                meta.number = meta.number | BEGUN;
                READ(numbers, meta.at, meta.theirs);
                if (meta.theirs != meta.number) {
                    meta.number = meta.number + ANSWERED;
                    if (meta.theirs != meta.number) {
                        meta.number = meta.number - ANSWERED;
                        if (meta.theirs >= BEGUN) {
                            meta.theirs = meta.number - meta.theirs;
                            meta.theirs = meta.theirs & EARLIER;
                        }
                        if (meta.theirs == 0) {
                            WRITE(numbers, meta.at, meta.number);
                            meta.before = 0;
                        } else {
                            meta.before = ONE_MISSING;
                            meta.seen = ALL_ONES;
                        }
                    }
                }
            } else {
                READ(marks, meta.other, meta.theirs);
                meta.theirs = meta.theirs & meta.others;
                WRITE(marks, meta.other, meta.theirs);
            }
            meta.seen = meta.seen | meta.before;
            if (meta.seen == ALL_ONES) {
                if (meta.before >= ONE_MISSING) {
                    meta.job = meta.job + DUPLICATE;
                } else {
                    meta.to = meta.again;
                    if (meta.to >= OF_LEAF) {
                        if (meta.theirs >= ANSWERED) {
                            meta.to = meta.to - OF_LEAF;
                        } else {
                            meta.to = meta.job + BROADCAST;
                        }
                    }
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
                if (meta.adds < ONE_MISSING) {
                    meta.job = meta.job + BROADCAST;
                    meta.to = meta.job;
                }
            }
        }
    }
}
