// Loss on purpose: a generator per port and way (xorshift, 32 bits), thrown only where there is a
// probability. The same sequence on every target, so that runs with loss can be compared: the first
// number of each generator comes with the plan. meta.loss comes in as the probability and is 0
// afterwards where the packet is not lost.
control Loss(inout headers_t hdr, inout metadata_t meta) {
    REGISTER(bit<32>, dice, 2 * MOST_PORTS);
    apply {
        if (meta.loss != 0) {
            READ(dice, meta.way, meta.dice);
            meta.shifted = meta.dice << 13;
            meta.dice = meta.dice ^ meta.shifted;
            meta.shifted = meta.dice >> 17;
            meta.dice = meta.dice ^ meta.shifted;
            meta.shifted = meta.dice << 5;
            meta.dice = meta.dice ^ meta.shifted;
            WRITE(dice, meta.way, meta.dice);
            meta.shifted = meta.dice & 0xffff;
            if (meta.shifted >= meta.loss) {
                meta.loss = 0;
            }
        }
    }
}
