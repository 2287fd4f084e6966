// The larger of the exponents seen. They are signed: registers hold them plus 128. The packet gets
// them when it becomes a result.
control Exponents(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<8>, exponents0, 2 * SLOTS);
    REGISTER(bit<8>, exponents1, 2 * SLOTS);
    apply {
        if (meta.repeated == 0) {
            meta.old8 = hdr.switchml.e0 + 128;
            if (meta.first == 0) {
                READ(exponents0, meta.at, meta.seen8);
                if (meta.seen8 > meta.old8) {
                    meta.old8 = meta.seen8;
                }
            }
            WRITE(exponents0, meta.at, meta.old8);
            meta.old8 = hdr.switchml.e1 + 128;
            if (meta.first == 0) {
                READ(exponents1, meta.at, meta.seen8);
                if (meta.seen8 > meta.old8) {
                    meta.old8 = meta.seen8;
                }
            }
            WRITE(exponents1, meta.at, meta.old8);
        }
        if (meta.group != 0) {
            READ(exponents0, meta.at, meta.seen8);
            hdr.switchml.e0 = meta.seen8 + 128;
            READ(exponents1, meta.at, meta.seen8);
            hdr.switchml.e1 = meta.seen8 + 128;
        }
    }
}
