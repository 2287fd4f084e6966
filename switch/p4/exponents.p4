// The larger of the exponents seen. They are signed: registers hold them plus 128. The packet gets
// them when it becomes a result.
control Exponents(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<8>, exponents0, 2 * SLOTS);
    REGISTER(bit<8>, exponents1, 2 * SLOTS);
    apply {
        if (meta.repeated == 0) {
            if (meta.mine != meta.mark) {
                READ(exponents0, meta.at, meta.seen0);
                if (meta.seen0 >= meta.e0) {
                    meta.e0 = meta.seen0;
                }
                READ(exponents1, meta.at, meta.seen1);
                if (meta.seen1 >= meta.e1) {
                    meta.e1 = meta.seen1;
                }
            }
            WRITE(exponents0, meta.at, meta.e0);
            WRITE(exponents1, meta.at, meta.e1);
        }
        if (meta.group != 0) {
            READ(exponents0, meta.at, meta.seen0);
            hdr.switchml.e0 = meta.seen0 + 128;
            READ(exponents1, meta.at, meta.seen1);
            hdr.switchml.e1 = meta.seen1 + 128;
        }
    }
}
