// OmniReduce's packets for the tests of switch/.
#pragma once

#include "switch/sparse.h"
#include "tests/switch/support.h"

namespace ghostrank::switchml {

// Worker w's packet of a round: element i of its block is `first` + i; `elements` 0: no block.
inline Bytes block_of(int w, int slot, int set, std::uint32_t round, std::uint32_t next,
                      std::int32_t first, int elements) {
  Packet p;
  const Worker who = worker(w, w);
  p.source = {who.mac, who.ip, kWorkerPort};
  p.target = {kSwitchMac, kSwitchIp, kSparsePort};
  p.id = round;
  p.slot = static_cast<std::uint16_t>(slot);
  p.set = static_cast<std::uint8_t>(set);
  p.next = next;
  p.elements = elements;
  Bytes frame(sparse_frame_bytes(elements));
  write_sparse_header(p, frame.data());
  for (int i = 0; i < elements; ++i)
    store32(frame.data() + kSparseHeaderBytes + 4 * i,
            static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(i));
  return frame;
}

}  // namespace ghostrank::switchml
