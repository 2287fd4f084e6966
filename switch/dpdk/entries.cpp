#include "switch/dpdk/entries.h"

#include <array>
#include <cstdio>
#include <stdexcept>

namespace ghostrank::dpdk {
namespace {

using switchml::Direction;
using switchml::Mac;
using switchml::Receiver;
using switchml::SwitchPlan;
using switchml::Tables;

constexpr int kLeaving = 256;       // MOST_PORTS in p4/headers.p4: the way out of port 0
constexpr int kCreditSession = 64;  // of port 0, in p4/dpdk.p4
constexpr std::uint64_t kOneMissing = 1ull << 32;  // ONE_MISSING in p4/headers.p4

template <typename Number>
std::string hex(Number value) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::uint64_t number_of(const Mac& mac) {
  std::uint64_t n = 0;
  for (const std::uint8_t b : mac) n = n << 8 | b;
  return n;
}

void add_die(const SwitchPlan& plan, int port, Direction direction, std::uint16_t probability,
             std::vector<std::string>& lines) {
  if (probability == 0) return;
  const std::string die = std::to_string(port + (direction == Direction::egress ? kLeaving : 0));
  // The egress probability is in the entries of the receivers.
  if (direction == Direction::ingress)
    lines.push_back("register probability_0 " + die + " " + std::to_string(probability));
  lines.push_back("register loss_dice " + die + " " +
                  std::to_string(switchml::loss_seed(plan.seed, port, direction)));
}

// The checksum of the IPv4 header of a result for `r`.
std::uint16_t checksum_of(const SwitchPlan& plan, const Tables& job, const Receiver& r) {
  std::array<std::byte, switchml::kUdpHeaderBytes> frame{};
  switchml::write_udp_headers({plan.mac, plan.ip, 0}, {r.mac, r.ip, r.udp}, job.result_bytes,
                              frame.data());
  return switchml::load16(frame.data() + switchml::kIpChecksumAt);
}

// The key of the n-th receiver of a group in the table of receivers.
std::string receiver_key(const Tables::Group& group, std::size_t n) {
  return hex(group.number | static_cast<std::uint32_t>(n) << 16);
}

// The way out of a port, and in the high 16 bits the probability of loss there.
std::uint32_t leaving(const SwitchPlan& plan, int port) {
  const std::uint32_t loss = port < std::ssize(plan.loss) ? plan.loss[port].egress : 0;
  return loss << 16 | static_cast<std::uint32_t>(port + kLeaving);
}

// The entry of one receiver of a group. The first entry also holds the fields that are the same for
// all. The packet itself goes to the last receiver; the earlier ones get mirrored copies.
std::string receiver_line(const SwitchPlan& plan, const Tables& job, const Tables::Group& group,
                          std::size_t n) {
  const Receiver& r = group.receivers[n];
  const bool first = n == 0, last = n + 1 == group.receivers.size();
  const char* action = first ? (last ? "only" : "first") : (last ? "final" : "following");
  std::string line = "receivers match " + receiver_key(group, n) + " action " + action +
                     (last ? " port " : " session ") + hex(r.port) + " leaving " +
                     hex(leaving(plan, r.port)) + " number " + hex(r.number) + " mac " +
                     hex(number_of(r.mac)) + " ip " + hex(r.ip) + " checksum " +
                     hex(checksum_of(plan, job, r));
  if (first)
    line += " udp " + hex(r.udp) + " own_mac " + hex(number_of(plan.mac)) + " own_ip " +
            hex(plan.ip) + " job " + hex(job.row() + switchml::kCopies);
  if (!last) line += " next " + receiver_key(group, n + 1);
  return line;
}

std::string source_line(const Tables::Source& s, const Tables& job) {
  const std::string match =
      "source_sources match " + hex(s.port) + " " + hex(s.ip) + " " + hex(s.index) + " action ";
  if (s.upper)
    return match + "source_upper_0 at " + hex(s.row) + " other " + hex(s.other) + " job " +
           hex(job.row() + switchml::kFromAbove);
  const std::uint64_t mark = 1ull << s.worker;
  return match + "source_worker_0 adds " + hex(mark - kOneMissing) + " others " + hex(~mark) +
         " round " + hex(static_cast<std::uint64_t>(s.workers) * kOneMissing) + " at " +
         hex(s.row) + " other " + hex(s.other) + " again " + hex(s.again) + " job " +
         hex(job.row());
}

}  // namespace

int register_slots(int elements) { return elements == 256 ? 4096 : 16384; }

std::vector<std::string> entries_of_plan(const SwitchPlan& plan) {
  if (plan.ports > kMostPorts)
    throw std::invalid_argument("the P4 program has at most " + std::to_string(kMostPorts) +
                                " ports, not " + std::to_string(plan.ports));
  std::vector<std::string> lines;
  for (int p = 0; p < plan.ports && p < std::ssize(plan.loss); ++p) {
    const switchml::PortLoss& loss = plan.loss[p];
    add_die(plan, p, Direction::ingress, loss.ingress, lines);
    add_die(plan, p, Direction::egress, loss.egress, lines);
  }
  for (const switchml::Forward& f : plan.forward)
    lines.push_back("forwarding match " + hex(number_of(f.mac)) + " action forward port " +
                    hex(f.port));
  for (int p = 0; p < plan.ports; ++p) {
    lines.push_back("flooding match " + hex(p) + " action forward_1 port " + hex(plan.ports + p));
    lines.push_back("credits match " + hex(p + kLeaving) + " action credit session " +
                    hex(p + kCreditSession));
  }
  return lines;
}

std::vector<std::string> entries_of_job(const SwitchPlan& plan, const Tables& job) {
  std::vector<std::string> lines;
  for (const Tables::Source& s : job.sources) lines.push_back(source_line(s, job));
  for (const Tables::Group& group : job.groups) {
    for (std::size_t n = 0; n < group.receivers.size(); ++n)
      lines.push_back(receiver_line(plan, job, group, n));
  }
  return lines;
}

}  // namespace ghostrank::dpdk
