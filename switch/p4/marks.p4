// Is this chunk the first of its round, a further one, or one that was counted before? Both sets'
// marks are one register: a chunk in one set takes back its worker's mark in the other.
control Marks(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<64>, marks, SLOTS);
    apply {
        meta.slot = meta.slot + meta.offset;
        meta.at = (bit<32>)meta.slot;
        READ(marks, meta.at, meta.pair);
        if (meta.set == 0) {
            meta.mine = (bit<32>)meta.pair;
            meta.pair = meta.pair >> 32;
            meta.theirs = (bit<32>)meta.pair;
        } else {
            meta.theirs = (bit<32>)meta.pair;
            meta.pair = meta.pair >> 32;
            meta.mine = (bit<32>)meta.pair;
        }
        meta.first = 0;
        if (meta.mine == 0) {
            meta.first = 1;
        }
        meta.repeated = 0;
        meta.old = meta.mine & meta.mark;
        if (meta.old != 0) {
            meta.repeated = 1;
        }
        meta.mine = meta.mine | meta.mark;
        meta.theirs = meta.theirs & meta.others;
        if (meta.set == 0) {
            meta.pair = (bit<64>)meta.theirs;
            meta.pair = meta.pair << 32;
            meta.pair = meta.pair | (bit<64>)meta.mine;
        } else {
            meta.pair = (bit<64>)meta.mine;
            meta.pair = meta.pair << 32;
            meta.pair = meta.pair | (bit<64>)meta.theirs;
        }
        WRITE(marks, meta.at, meta.pair);
        // From here on: the row of this slot and set.
        meta.at = meta.at << 1;
        meta.at = meta.at | (bit<32>)meta.set;
    }
}
