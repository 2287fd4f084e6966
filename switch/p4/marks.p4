// Is this chunk the first of its round, a further one, or one that was counted before? A chunk in
// one set takes back its worker's mark in the other.
control Marks(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<32>, marks0, SLOTS);
    REGISTER(bit<32>, marks1, SLOTS);
    apply {
        meta.slot = meta.slot + meta.offset;
        meta.at = (bit<32>)meta.slot;
        READ(marks0, meta.at, meta.mine);
        READ(marks1, meta.at, meta.theirs);
        if (meta.set == 1) {
            meta.old = meta.mine;
            meta.mine = meta.theirs;
            meta.theirs = meta.old;
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
            WRITE(marks0, meta.at, meta.mine);
            WRITE(marks1, meta.at, meta.theirs);
        } else {
            WRITE(marks1, meta.at, meta.mine);
            WRITE(marks0, meta.at, meta.theirs);
        }
        // From here on: the row of this slot and set.
        meta.at = meta.at << 1;
        if (meta.set == 1) {
            meta.at = meta.at + 1;
        }
    }
}
