// The messages of the controller that p4lang/p4app-switchML publishes: with them a worker enters a
// session, and learns the switch's addresses. They are protobuf, with varint fields only.
//
//   UdpSession   request  1 session | 2 rank | 3 workers | 4 MAC | 5 IPv4 | 7 packet size
//                answer   1 session | 2 MAC | 3 IPv4            of the switch
//
// The packet size is SwitchML's own code (switch/wire/switchml.h): 1 for 64 elements, 3 for 256. A
// field that is 0 may be left out. Source: the field numbers of switchml.proto there.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "switch/wire/udp.h"

namespace ghostrank::switchml {

inline constexpr const char* kUdpSession = "/switchml_proto.Session/UdpSession";

using Fields = std::map<std::uint32_t, std::uint64_t>;  // by number

std::string message_of(const Fields& fields);
// The varint fields of a message, by number: of a repeated field the last; other types are skipped.
// Empty: the bytes are no message.
std::optional<Fields> read_message(std::string_view bytes);

struct SessionRequest {
  std::uint64_t session = 0;
  std::uint32_t rank = 0, workers = 0;
  Mac mac{};
  std::uint32_t ip = 0;
  int elements = 0;  // of a packet: 32, 64 or 256
};
Fields fields_of(const SessionRequest& request);

struct SessionAnswer {
  std::uint64_t session = 0;
  Mac mac{};
  std::uint32_t ip = 0;
};
SessionAnswer answer_of(const Fields& fields);

}  // namespace ghostrank::switchml
