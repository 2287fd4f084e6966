// Fabrics over libfabric between the processes of a test.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "emulator/fabric/ofi/ofi.h"
#include "profiles/error.h"
#include "tests/emulator/processes/processes.h"

namespace ghostrank::testing {

inline constexpr std::uint64_t kNonce = 0x1234'5678'9abc'def0;

// Providers to test with. None on this machine requires registered memory; "registered" tests it
// all the same: over rxm the peer reads large messages from the registered regions.
inline constexpr const char kRegistered[] = " registered";
inline const auto kProviders =
    ::testing::Values("net", "tcp;ofi_rxm", "sockets", "net registered", "tcp;ofi_rxm registered");

inline OfiOptions options_for(const std::string& provider, bool keep_payload = false) {
  OfiOptions o;
  o.provider = provider.substr(0, provider.find(kRegistered));
  o.registered = provider.ends_with(kRegistered);
  o.endpoints[0].address = "127.0.0.1";
  o.nonce = kNonce;
  o.keep_payload = keep_payload;
  return o;
}

struct Joined {
  std::unique_ptr<Control> control;
  std::unique_ptr<NetworkFabric> fabric;

  // Meets the others first, because no endpoint may close while others still send to it.
  void leave() {
    control->all_gather("");
    fabric.reset();
    control->close();
  }
};

// Flow h leads to host h, whose flow to us has our number.
inline std::vector<FabricFlow> flows_to(const std::vector<std::string>& addresses, int self) {
  std::vector<FabricFlow> flows;
  for (std::size_t h = 0; h < addresses.size(); ++h)
    flows.push_back(
        {0, addresses[h], "host " + std::to_string(h), static_cast<std::uint32_t>(self)});
  return flows;
}

inline Joined join(const World& world, const OfiOptions& options) {
  Joined j{Control::meet(world), open_ofi_fabric(options)};
  const auto addresses = j.control->all_gather(j.fabric->address(0));
  if (addresses.empty()) throw Error("lost: " + j.control->stop_reason());
  j.fabric->connect(flows_to(addresses, world.rank));
  return j;
}

inline Payload random_bytes(std::uint64_t bytes, std::uint64_t seed) {
  Payload payload(new std::byte[bytes]);
  std::mt19937_64 random(seed);
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(payload.get() + i, &word, std::min<std::uint64_t>(8, bytes - i));
  }
  return payload;
}

inline Message make_message(std::uint64_t bytes, int source, std::uint32_t ordinal) {
  Message m;
  m.header.source = source;
  m.header.sequence = ordinal;
  m.header.bytes = bytes & kMostBytes;
  return m;
}

inline void send_all(NetworkFabric& fabric, int host, Message message,
                     std::vector<Message>& arrived) {
  while (fabric.failure().empty() && !fabric.try_send(host, message)) fabric.poll(arrived);
}

// Polls until `count` messages have arrived and all sends have left; false after 10 s.
inline bool finish(NetworkFabric& fabric, std::size_t count, std::vector<Message>& arrived) {
  return eventually(
      [&] {
        if (fabric.poll(arrived) == 0)
          fabric.wait(std::chrono::milliseconds(1), std::chrono::nanoseconds(0));
        return !fabric.failure().empty() || (arrived.size() >= count && fabric.idle());
      },
      std::chrono::seconds(10));
}

// "tcp;ofi_rxm" as part of a test's name.
inline std::string name_of_provider(const ::testing::TestParamInfo<const char*>& provider) {
  std::string name = provider.param;
  std::replace(name.begin(), name.end(), ';', '_');
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

}  // namespace ghostrank::testing
