// How many workers are still to come, and who gets what: everybody when the last one came, the
// sender alone when it asks again for what is complete, nobody otherwise.
control Missing(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<8>, missing, 2 * SLOTS);
    apply {
        READ(missing, meta.at, meta.missing);
        if (meta.repeated != 0) {
            if (meta.missing == 0) {
                meta.group = meta.again;
                meta.job = meta.job + RETRANSMISSION;
            } else {
                meta.job = meta.job + DUPLICATE;
            }
        } else {
            if (meta.missing == 0) {
                meta.missing = meta.last;
            } else {
                meta.missing = meta.missing - 1;
            }
            WRITE(missing, meta.at, meta.missing);
            if (meta.missing == 0) {
                meta.group = meta.all;
                meta.job = meta.job + BROADCAST;
            }
        }
    }
}
