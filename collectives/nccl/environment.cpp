// See nccl/environment.h. Within the bounds below, NCCL takes a value as it is.
#include "collectives/nccl/environment.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <stdexcept>

namespace ghostrank {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& value,
                         const std::string& why) {
  throw std::invalid_argument(name + "=" + value + ": " + why);
}

enum class Also : std::uint8_t { nothing, even, multiple_of_32, multiple_of_4096, power_of_two };

struct Settings {  // values of the numeric variables; 0 or the default: not set
  std::int64_t min_nchannels = 0, max_nchannels = 0, min_ctas = 0, max_ctas = 0;
  std::int64_t threads = 0, ll128_threads = 0;
  std::int64_t simple = 0, ll = 0, ll128 = 0;
  std::int64_t net_chunk = 0, min_p2p = 0, max_p2p = 0, net_peer = 0, cross_nic = -1;
  std::int64_t p2p_group = 8, p2p_message = 0, nvls_tree_chunk = 0;
  std::int64_t p2p_pxn = 2, pxn_disable = 0, nvls = 2, pat = 2;
};

struct Variable {
  const char* name;
  std::int64_t Settings::*value;
  std::int64_t least, most;
  Also also = Also::nothing;
};

constexpr std::int64_t kMostChannels = 64, kLeastBuffer = 64 << 10, kMostBuffer = 1 << 30;

constexpr std::array kVariables{
    Variable{"NCCL_MIN_NCHANNELS", &Settings::min_nchannels, 1, kMostChannels},
    Variable{"NCCL_MAX_NCHANNELS", &Settings::max_nchannels, 1, kMostChannels},
    Variable{"NCCL_MIN_CTAS", &Settings::min_ctas, 1, kMostChannels},
    Variable{"NCCL_MAX_CTAS", &Settings::max_ctas, 1, kMostChannels},
    Variable{"NCCL_NTHREADS", &Settings::threads, 64, 512, Also::multiple_of_32},
    Variable{"NCCL_LL128_NTHREADS", &Settings::ll128_threads, 160, 640, Also::multiple_of_32},
    Variable{"NCCL_BUFFSIZE", &Settings::simple, kLeastBuffer, kMostBuffer, Also::multiple_of_4096},
    Variable{"NCCL_LL_BUFFSIZE", &Settings::ll, kLeastBuffer, kMostBuffer, Also::multiple_of_4096},
    Variable{"NCCL_LL128_BUFFSIZE", &Settings::ll128, kLeastBuffer, kMostBuffer,
             Also::multiple_of_4096},
    Variable{"NCCL_P2P_NET_CHUNKSIZE", &Settings::net_chunk, 8 << 10, kMostBuffer / 8,
             Also::power_of_two},
    Variable{"NCCL_MIN_P2P_NCHANNELS", &Settings::min_p2p, 1, kMostChannels},
    Variable{"NCCL_MAX_P2P_NCHANNELS", &Settings::max_p2p, 1, kMostChannels},
    Variable{"NCCL_NCHANNELS_PER_NET_PEER", &Settings::net_peer, 1, kMostChannels},
    Variable{"NCCL_P2P_SCHEDULE_GROUP_SIZE", &Settings::p2p_group, 1, 8},
    Variable{"NCCL_CHUNK_SIZE", &Settings::p2p_message, 512, kMostBuffer / 8, Also::power_of_two},
    Variable{"NCCL_P2P_PXN_LEVEL", &Settings::p2p_pxn, 0, 2, Also::even},
    Variable{"NCCL_NVLS_ENABLE", &Settings::nvls, 0, 2},
    Variable{"NCCL_PAT_ENABLE", &Settings::pat, 0, 2, Also::even},
    Variable{"NCCL_NVLSTREE_MAX_CHUNKSIZE", &Settings::nvls_tree_chunk, 4096, 128 << 10,
             Also::multiple_of_4096},
    Variable{"NCCL_CROSS_NIC", &Settings::cross_nic, 0, 2},
    Variable{"NCCL_PXN_DISABLE", &Settings::pxn_disable, 0, 1},
};

bool fits(std::int64_t value, Also also) {
  switch (also) {
    case Also::even:
      return value % 2 == 0;
    case Also::multiple_of_32:
      return value % 32 == 0;
    case Also::multiple_of_4096:
      return value % 4096 == 0;
    case Also::power_of_two:
      return std::has_single_bit(static_cast<std::uint64_t>(value));
    case Also::nothing:
      break;
  }
  return true;
}

const char* words(Also also) {
  constexpr const char* kWords[] = {"", ", an even one", ", a multiple of 32",
                                    ", a multiple of 4096", ", a power of two"};
  return kWords[static_cast<std::size_t>(also)];
}

std::int64_t number(const Variable& variable, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const bool whole = error == std::errc{} && stop == end;
  if (!whole || value < variable.least || value > variable.most || !fits(value, variable.also))
    refuse(variable.name, text,
           "takes a whole number from " + std::to_string(variable.least) + " to " +
               std::to_string(variable.most) + words(variable.also));
  return value;
}

// The tighter of two bounds; 0: no bound.
std::int64_t tighter(std::int64_t a, std::int64_t b) {
  return a == 0 || b == 0 ? a + b : std::min(a, b);
}

}  // namespace

std::vector<std::string> nccl_variables() {
  std::vector<std::string> names{"NCCL_ALGO", "NCCL_PROTO"};
  for (const Variable& variable : kVariables) names.emplace_back(variable.name);
  return names;
}

NcclSettings nccl_settings(const Environment& environment) {
  NcclSettings settings;
  Settings given;
  for (const auto& [name, value] : environment) {
    const auto same = [&](const Variable& variable) { return variable.name == name; };
    const auto at = std::find_if(kVariables.begin(), kVariables.end(), same);
    if (at != kVariables.end()) {
      given.*at->value = number(*at, value);
    } else if (name == "NCCL_ALGO") {
      settings.tuner.algorithms = value;
    } else if (name == "NCCL_PROTO") {
      settings.tuner.protocols = value;
    } else {
      std::string known;
      for (const std::string& one : nccl_variables()) known += (known.empty() ? "" : ", ") + one;
      refuse(name, value, "not a variable that is followed here; known are " + known);
    }
  }
  check_overrides(settings.tuner);
  settings.min_ctas = given.min_ctas;
  settings.max_ctas = given.max_ctas;
  settings.min_channels = std::max(given.min_nchannels, given.min_ctas);
  settings.max_channels = tighter(given.max_nchannels, given.max_ctas);
  if (settings.max_channels > 0 && settings.min_channels > settings.max_channels)
    throw std::invalid_argument(
        "the least number of channels, " + std::to_string(settings.min_channels) +
        ", is above the largest, " + std::to_string(settings.max_channels) +
        ": repeating a part of the channels is not available; change NCCL_MIN_NCHANNELS or "
        "NCCL_MAX_NCHANNELS (or the CTAS)");
  settings.tuner.threads = static_cast<int>(given.threads);
  settings.tuner.ll128_threads = static_cast<int>(given.ll128_threads);
  const auto buffer = [](std::int64_t asked, std::uint64_t& bytes) {
    if (asked > 0) bytes = asked;
  };
  buffer(given.simple, settings.buffers.simple);
  buffer(given.ll, settings.buffers.ll);
  buffer(given.ll128, settings.buffers.ll128);
  settings.net_chunk_bytes = given.net_chunk;
  settings.min_p2p_channels = given.min_p2p;
  settings.max_p2p_channels = given.max_p2p;
  settings.net_peer_channels = given.net_peer;
  settings.p2p_message_bytes = given.p2p_message;
  settings.p2p_group = static_cast<int>(given.p2p_group);
  settings.pxn = given.pxn_disable == 0;
  settings.p2p_pxn = settings.pxn && given.p2p_pxn > 0;
  settings.nvls = given.nvls > 0;
  settings.pat = given.pat > 0;
  buffer(given.nvls_tree_chunk, settings.buffers.nvls_tree_chunk);
  settings.cross_nic = given.cross_nic;
  return settings;
}

}  // namespace ghostrank
