// The larger of the exponents seen. They are signed: registers hold them plus 128.
control Exponents(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<8>, exponents0, 2 * SLOTS);
    REGISTER(bit<8>, exponents1, 2 * SLOTS);
    apply {
        hdr.switchml.e0 = hdr.switchml.e0 + 128;
        hdr.switchml.e1 = hdr.switchml.e1 + 128;
        if (meta.first == 0) {
            READ(exponents0, meta.at, meta.old8);
            if (meta.repeated == 1) {
                hdr.switchml.e0 = meta.old8;
            } else {
                if (meta.old8 > hdr.switchml.e0) {
                    hdr.switchml.e0 = meta.old8;
                }
            }
            READ(exponents1, meta.at, meta.old8);
            if (meta.repeated == 1) {
                hdr.switchml.e1 = meta.old8;
            } else {
                if (meta.old8 > hdr.switchml.e1) {
                    hdr.switchml.e1 = meta.old8;
                }
            }
        }
        WRITE(exponents0, meta.at, hdr.switchml.e0);
        WRITE(exponents1, meta.at, hdr.switchml.e1);
        hdr.switchml.e0 = hdr.switchml.e0 + 128;
        hdr.switchml.e1 = hdr.switchml.e1 + 128;
    }
}
