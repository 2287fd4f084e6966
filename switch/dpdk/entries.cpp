#include "switch/dpdk/entries.h"

#include <array>
#include <cstdio>
#include <stdexcept>

namespace ghostrank::dpdk {
namespace {

using switchml::Mac;
using switchml::Receiver;
using switchml::SwitchPlan;
using switchml::Tables;
using switchml::Way;

constexpr int kEgressDice = 256;  // MOST_PORTS in p4/headers.p4: those of what leaves

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

void add_die(const SwitchPlan& plan, int port, Way way, std::uint16_t probability,
             std::vector<std::string>& lines) {
  if (probability == 0) return;
  const std::string die = std::to_string(port + (way == Way::egress ? kEgressDice : 0));
  lines.push_back("register loss_probability " + die + " " + std::to_string(probability));
  lines.push_back("register loss_dice " + die + " " +
                  std::to_string(switchml::loss_seed(plan.seed, port, way)));
}

// Of the IPv4 header that a result has when it leaves for `r`.
std::uint16_t checksum_of(const SwitchPlan& plan, int elements, const Receiver& r) {
  std::array<std::byte, switchml::kUdpHeaderBytes> frame{};
  switchml::write_udp_headers({plan.mac, plan.ip, 0}, {r.mac, r.ip, r.udp},
                              switchml::frame_bytes(elements), frame.data());
  return switchml::load16(frame.data() + switchml::kIpChecksumAt);
}

// Where a copy goes: what all receivers have of their own.
std::string receiver_text(const SwitchPlan& plan, const Tables& job, const Receiver& r) {
  return hex(r.port) + " die " + hex(r.port + kEgressDice) + " mac " + hex(number_of(r.mac)) +
         " ip " + hex(r.ip) + " checksum " + hex(checksum_of(plan, job.elements, r));
}

std::string copies_text(const Tables& job) {
  return " job " + hex(job.job * switchml::kJobCounterRow + switchml::kCopies);
}

// The first of a group gets what is alike for all of them, too.
std::string first_line(const SwitchPlan& plan, const Tables& job, const Tables::Group& group) {
  const Receiver& r = group.receivers[0];
  return "receivers match " + hex(group.number) + " action " +
         (group.receivers.size() == 1 ? "only port " : "first session ") +
         receiver_text(plan, job, r) + " udp " + hex(r.udp) + " own_mac " +
         hex(number_of(plan.mac)) + " own_ip " + hex(plan.ip) + copies_text(job);
}

// The last one of a group is sent to, the others are mirrored to.
std::string next_line(const SwitchPlan& plan, const Tables& job, int slot, const Receiver& before,
                      const Receiver& r, bool last) {
  return "following match " + hex(before.ip) + " " + hex(slot) + " action " +
         (last ? "final port " : "next session ") + receiver_text(plan, job, r) + copies_text(job);
}

std::string source_line(const Tables::Source& s, int job) {
  const std::string match =
      "source_sources match " + hex(s.port) + " " + hex(s.ip) + " " + hex(s.slot) + " action ";
  const std::string counters = " job " + hex(job * switchml::kJobCounterRow);
  if (s.upper) return match + "source_upper_0 all " + hex(s.all) + counters;
  const std::uint32_t mark = 1u << s.worker;
  return match + "source_worker_0 mark " + hex(mark) + " others " + hex(~mark) + " last " +
         hex(s.workers - 1) + " row " + hex(s.row) + " all " + hex(s.all) + " again " +
         hex(s.again) + counters;
}

}  // namespace

int register_slots(int elements) { return elements == 256 ? 4096 : 16384; }

std::vector<std::string> entries_of_plan(const SwitchPlan& plan) {
  if (plan.ports > kMostPorts)
    throw std::invalid_argument("the P4 program has at most " + std::to_string(kMostPorts) +
                                " ports, not " + std::to_string(plan.ports));
  std::vector<std::string> lines;
  for (int p = 0; p < plan.ports && p < std::ssize(plan.loss); ++p) {
    const switchml::PortLoss& loss = plan.loss[static_cast<std::size_t>(p)];
    add_die(plan, p, Way::ingress, loss.ingress, lines);
    add_die(plan, p, Way::egress, loss.egress, lines);
  }
  for (const switchml::Forward& f : plan.forward)
    lines.push_back("forwarding match " + hex(number_of(f.mac)) + " action forward port " +
                    hex(f.port));
  for (int p = 0; p < plan.ports; ++p)
    lines.push_back("flooding match " + hex(p) + " action forward_1 port " + hex(plan.ports + p));
  return lines;
}

std::vector<std::string> entries_of_job(const SwitchPlan& plan, const Tables& job) {
  std::vector<std::string> lines;
  for (const Tables::Source& s : job.sources) lines.push_back(source_line(s, job.job));
  for (const Tables::Group& group : job.groups) {
    const std::size_t n = group.receivers.size();
    lines.push_back(first_line(plan, job, group));
    for (std::size_t i = 1; i < n; ++i) {
      for (int slot = job.first_slot; slot < job.first_slot + job.slots; ++slot)
        lines.push_back(
            next_line(plan, job, slot, group.receivers[i - 1], group.receivers[i], i + 1 == n));
    }
  }
  return lines;
}

}  // namespace ghostrank::dpdk
