// The sums. Register k holds element k of every header of 32; a slot and set has ROWS rows in it.
// Neighbours do not follow each other (headers.p4 says why). The first chunk of a round overwrites,
// so that nothing is ever cleared; a sum is fetched only when somebody gets it.
#define EVERY_LANE(DO, row)                                                                        \
    DO(row, 0) DO(row, 2) DO(row, 4) DO(row, 6) DO(row, 8) DO(row, 10) DO(row, 12) DO(row, 14)     \
    DO(row, 16) DO(row, 18) DO(row, 20) DO(row, 22) DO(row, 24) DO(row, 26) DO(row, 28) DO(row, 30)\
    DO(row, 1) DO(row, 3) DO(row, 5) DO(row, 7) DO(row, 9) DO(row, 11) DO(row, 13) DO(row, 15)     \
    DO(row, 17) DO(row, 19) DO(row, 21) DO(row, 23) DO(row, 25) DO(row, 27) DO(row, 29) DO(row, 31)

#define DECLARE(row, k) REGISTER(bit<32>, lane##k, 2 * SLOTS * ROWS);
#define OVERWRITE(row, k) WRITE(lane##k, meta.at, hdr.lanes##row.v##k);
#define COLLECT(row, k)                                                                            \
    READ(lane##k, meta.at, meta.old);                                                              \
    meta.old = meta.old + hdr.lanes##row.v##k;                                                     \
    WRITE(lane##k, meta.at, meta.old);
#define RECALL(row, k) READ(lane##k, meta.at, hdr.lanes##row.v##k);

#define NEXT_ROW meta.at = meta.at + 1;
#if ROWS == 1
#define EVERY_ROW(DO) EVERY_LANE(DO, 0)
#elif ROWS == 2
#define EVERY_ROW(DO) EVERY_LANE(DO, 0) NEXT_ROW EVERY_LANE(DO, 1)
#else
#define EVERY_ROW(DO)                                                                              \
    EVERY_LANE(DO, 0) NEXT_ROW EVERY_LANE(DO, 1) NEXT_ROW EVERY_LANE(DO, 2) NEXT_ROW               \
    EVERY_LANE(DO, 3) NEXT_ROW EVERY_LANE(DO, 4) NEXT_ROW EVERY_LANE(DO, 5) NEXT_ROW               \
    EVERY_LANE(DO, 6) NEXT_ROW EVERY_LANE(DO, 7)
#endif

// From the row of a slot and set to the first of its rows of lanes, and back from the last.
#if ROWS == 1
#define TO_ROWS
#define FROM_ROWS
#elif ROWS == 2
#define TO_ROWS meta.at = meta.at << 1;
#define FROM_ROWS meta.at = meta.at >> 1;
#else
#define TO_ROWS meta.at = meta.at << 3;
#define FROM_ROWS meta.at = meta.at >> 3;
#endif

control Sums(inout headers_t hdr, inout metadata_t meta) {
    EVERY_LANE(DECLARE, 0)
    apply {
        if (meta.before == 0) {
            if (meta.seen != ALL_ONES) {
                TO_ROWS
                EVERY_ROW(OVERWRITE)
                FROM_ROWS
            }
        } else {
            TO_ROWS
            EVERY_ROW(COLLECT)
            FROM_ROWS
        }
        if (meta.to != 0) {
            if (hdr.lanes0.isValid()) {
                TO_ROWS
                EVERY_ROW(RECALL)
            }
        }
    }
}
