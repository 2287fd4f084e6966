// Damages a well-formed binary sample as the input says, so that fuzzing gets past the first checks
// and seeds stay valid when a format changes. The input is a list of records of four bytes:
//
//   what | position (2 bytes, little-endian, modulo the size of the sample) | value
//
//   0 overwrite a byte with `value`    3 cut off everything from here
//   1 insert `value` bytes of 0x41     4 overwrite 8 bytes with a troublesome number
//   2 erase `value` bytes              5 repeat `value` bytes
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace ghostrank::fuzz {

inline constexpr std::array<std::uint64_t, 9> kTrouble{
    0, 1, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 40, 1ull << 63, ~0ull};

inline std::string damaged(std::string sample, const std::uint8_t* data, std::size_t size) {
  for (; size >= 4; data += 4, size -= 4) {
    if (sample.empty()) break;
    const std::size_t at = (data[1] + std::size_t{256} * data[2]) % sample.size();
    const std::uint8_t value = data[3];
    switch (data[0] % 6) {
      case 0:
        sample[at] = static_cast<char>(value);
        break;
      case 1:
        sample.insert(at, value, 'A');
        break;
      case 2:
        sample.erase(at, value);
        break;
      case 3:
        sample.resize(at);
        break;
      case 4: {
        const std::uint64_t number = kTrouble[value % kTrouble.size()];
        std::memcpy(sample.data() + at, &number, std::min(sizeof number, sample.size() - at));
        break;
      }
      default:
        sample.insert(at, std::string(sample, at, value));
    }
  }
  return sample;
}

}  // namespace ghostrank::fuzz
