// OmniReduce's packets for the tests of switch/.
#pragma once

#include "switch/wire/sparse.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {

// Worker w's packet of a round, whose block has elements from `first` on; `elements` 0: no block.
inline Bytes block_of(int w, int slot, int set, std::uint32_t round, std::uint32_t next,
                      std::int32_t first, int elements) {
  Packet p = packet_from(w, kSparsePort, slot, set, round, elements);
  p.next = next;
  Bytes frame(sparse_frame_bytes(elements));
  write_sparse_header(p, frame.data());
  put_elements(first, elements, frame.data() + kSparseHeaderBytes);
  return frame;
}

}  // namespace ghostrank::switchml
