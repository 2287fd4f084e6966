// The yardstick: the shortest loop that moves messages over the same libfabric provider. It polls,
// and has no headers, matching, pacing or accounting.
//
// Threading: forks; call it where no other thread runs.
#pragma once

#include <cstdint>
#include <string>

namespace ghostrank::bench {

// Seconds to move `count` messages of `bytes` one way between two processes of this machine over
// loopback.
double bare_stream_seconds(const std::string& provider, std::uint64_t bytes, std::uint64_t count);

}  // namespace ghostrank::bench
