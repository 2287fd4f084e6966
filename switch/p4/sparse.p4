// OmniReduce's part of a chunk: the least of the next blocks that its workers name.
control Sparse(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<32>, least, 2 * SLOTS);
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
        if (meta.to != 0) {
            READ(least, meta.at, hdr.sparse.next);
            hdr.ipv4.length = BLOCK_IP_LENGTH;
            hdr.udp.length = BLOCK_UDP_LENGTH;
        }
    }
}
