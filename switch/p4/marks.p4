// Was this chunk counted before, and whose were? A chunk in one set takes back its worker's mark in
// the other. Afterwards the first chunk of a round is the one whose mark stands alone.
control Marks(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<32>, marks, 2 * SLOTS);
    apply {
        meta.other = meta.at ^ 1;
        READ(marks, meta.at, meta.mine);
        READ(marks, meta.other, meta.theirs);
        meta.repeated = meta.mine & meta.mark;
        meta.mine = meta.mine | meta.mark;
        meta.theirs = meta.theirs & meta.others;
        WRITE(marks, meta.at, meta.mine);
        WRITE(marks, meta.other, meta.theirs);
    }
}
