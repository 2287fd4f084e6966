// The larger of the exponents of SwitchML's chunks. They are signed: registers hold them plus 128,
// and the packet on its way, too.
control Exponents(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<8>, exponents0, 2 * SLOTS);
    REGISTER(bit<8>, exponents1, 2 * SLOTS);
    apply {
        if (meta.before == 0) {
            if (meta.seen != ALL_ONES) {
                meta.e0 = hdr.switchml.e0 + 128;
                meta.e1 = hdr.switchml.e1 + 128;
                WRITE(exponents0, meta.at, meta.e0);
                WRITE(exponents1, meta.at, meta.e1);
            }
        } else {
            hdr.switchml.e0 = hdr.switchml.e0 + 128;
            hdr.switchml.e1 = hdr.switchml.e1 + 128;
            READ(exponents0, meta.at, meta.e0);
            READ(exponents1, meta.at, meta.e1);
            if (meta.e0 != hdr.switchml.e0) {  // mostly they are alike
                if (meta.e0 < hdr.switchml.e0) {
                    WRITE(exponents0, meta.at, hdr.switchml.e0);
                }
            }
            if (meta.e1 != hdr.switchml.e1) {
                if (meta.e1 < hdr.switchml.e1) {
                    WRITE(exponents1, meta.at, hdr.switchml.e1);
                }
            }
        }
        if (meta.to != 0) {
            READ(exponents0, meta.at, hdr.switchml.e0);
            hdr.switchml.e0 = hdr.switchml.e0 + 128;
            READ(exponents1, meta.at, hdr.switchml.e1);
            hdr.switchml.e1 = hdr.switchml.e1 + 128;
        }
    }
}
