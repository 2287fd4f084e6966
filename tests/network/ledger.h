// What a result says that its hosts sent each other. Host h plays node h, which has one NIC.
#pragma once

#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace ghostrank::testing {

struct Sent {
  double bytes = 0, messages = 0;  // bytes of payload
};

// By sender and receiver, summed over the measured iterations.
inline std::map<std::pair<int, int>, Sent> sent_by_host(const nlohmann::json& result) {
  std::map<std::pair<int, int>, Sent> sent;
  const auto iterations = static_cast<double>(result["iterations"].size());
  const auto node = [](const std::string& nic) { return std::stoi(nic.substr(1)); };  // "n3.nic0"
  for (const nlohmann::json& pair : result["traffic"]["pairs"]) {
    Sent& s = sent[{node(pair["src"]), node(pair["dst"])}];
    s.bytes += pair["bytes"].get<double>() * iterations;
    s.messages += pair["messages"].get<double>() * iterations;
  }
  return sent;
}

}  // namespace ghostrank::testing
