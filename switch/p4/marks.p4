// Is this chunk the first of its round, a further one, or one that was counted before? A chunk in
// one set takes back its worker's mark in the other.
control Marks(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<32>, marks, 2 * SLOTS);
    apply {
        meta.other = meta.at ^ 1;
        READ(marks, meta.at, meta.mine);
        READ(marks, meta.other, meta.theirs);
        meta.first = 0;
        if (meta.mine == 0) {
            meta.first = 1;
        }
        meta.repeated = 0;
        if (meta.mine & meta.mark != 0) {
            meta.repeated = 1;
        }
        meta.mine = meta.mine | meta.mark;
        meta.theirs = meta.theirs & meta.others;
        WRITE(marks, meta.at, meta.mine);
        WRITE(marks, meta.other, meta.theirs);
    }
}
