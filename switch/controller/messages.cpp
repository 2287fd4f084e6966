#include "switch/controller/messages.h"

namespace ghostrank::switchml {
namespace {

enum WireType : std::uint32_t { kNumber = 0, kEight = 1, kBytes = 2, kFour = 5 };

void put(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Takes a varint from the front of `bytes`; empty: there is none.
std::optional<std::uint64_t> take(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::uint64_t number_of(const Mac& mac) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : mac) number = number << 8 | byte;
  return number;
}

}  // namespace

std::string message_of(const Fields& fields) {
  std::string out;
  for (const auto& [number, value] : fields) {
    put(out, std::uint64_t{number} << 3 | kNumber);
    put(out, value);
  }
  return out;
}

std::optional<Fields> read_message(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const auto key = take(bytes);
    if (!key || *key >> 3 == 0 || *key >> 3 > 0x1fffffff) return std::nullopt;
    std::uint64_t skip = 0;
    switch (*key & 7) {
      case kNumber: {
        const auto value = take(bytes);
        if (!value) return std::nullopt;
        fields[static_cast<std::uint32_t>(*key >> 3)] = *value;
        continue;
      }
      case kEight:
        skip = 8;
        break;
      case kFour:
        skip = 4;
        break;
      case kBytes: {
        const auto length = take(bytes);
        if (!length) return std::nullopt;
        skip = *length;
        break;
      }
      default:
        return std::nullopt;
    }
    if (skip > bytes.size()) return std::nullopt;
    bytes.remove_prefix(skip);
  }
  return fields;
}

Fields fields_of(const SessionRequest& request) {
  const std::uint64_t size = request.elements == 256 ? 3 : request.elements == 64 ? 1 : 0;
  return {{1, request.session},        {2, request.rank}, {3, request.workers},
          {4, number_of(request.mac)}, {5, request.ip},   {7, size}};
}

SessionAnswer answer_of(const Fields& fields) {
  const auto value = [&](std::uint32_t number) {
    const auto found = fields.find(number);
    return found == fields.end() ? 0 : found->second;
  };
  SessionAnswer answer{value(1), {}, static_cast<std::uint32_t>(value(3))};
  std::uint64_t mac = value(2);
  for (std::size_t i = answer.mac.size(); i-- > 0; mac >>= 8)
    answer.mac[i] = static_cast<std::uint8_t>(mac);
  return answer;
}

}  // namespace ghostrank::switchml
