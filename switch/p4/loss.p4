// Loss on purpose: a generator per port (xorshift, 32 bits), thrown only where the port has a
// probability. The same sequence on every target, so that runs with loss can be compared.
control Loss(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<32>, dice, 256);
    apply {
        meta.lost = 0;
        if (meta.loss != 0) {
            READ(dice, meta.index, meta.dice);
            if (meta.dice == 0) {
                meta.dice = meta.seed;
            }
            meta.shifted = meta.dice << 13;
            meta.dice = meta.dice ^ meta.shifted;
            meta.shifted = meta.dice >> 17;
            meta.dice = meta.dice ^ meta.shifted;
            meta.shifted = meta.dice << 5;
            meta.dice = meta.dice ^ meta.shifted;
            WRITE(dice, meta.index, meta.dice);
            meta.shifted = meta.dice & 0xffff;
            if (meta.shifted < meta.loss) {
                meta.lost = 1;
            }
        }
    }
}
