#include "switch/bmv2/entries.h"

#include <array>
#include <cstdio>
#include <map>
#include <regex>

namespace ghostrank::bmv2 {
namespace {

using switchml::Direction;
using switchml::Mac;
using switchml::SwitchPlan;
using switchml::Tables;

constexpr int kLeaving = 256;  // MOST_PORTS in p4/headers.p4: the way out of port 0
constexpr std::uint64_t kOneMissing = 1ull << 32;  // ONE_MISSING in p4/headers.p4
constexpr int kEveryPort = 65535;                  // EVERY_PORT in p4/v1model.p4
// Rows of counters and the arrays that hold them: counted before a packet is copied, and after.
constexpr int kLost = 2;
constexpr const char* kPortCells = "Switch.port_counters";
constexpr const char* kLostCells = "Copy.port_counters";
constexpr const char* kJobCells = "Switch.job_counters";
constexpr const char* kSentCells = "Copy.copies";

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string text_of(const Mac& mac) {
  std::uint64_t n = 0;
  for (const std::uint8_t b : mac) n = n << 8 | b;
  return number(n);
}

void add_die(const SwitchPlan& plan, int port, Direction direction, std::uint16_t probability,
             std::vector<std::string>& lines) {
  if (probability == 0) return;
  const std::string control = direction == Direction::egress ? "Copy" : "Switch";
  const std::string die = std::to_string(port + (direction == Direction::egress ? kLeaving : 0));
  lines.push_back("register_write " + control + ".probability " + std::to_string(port) + " " +
                  std::to_string(probability));
  lines.push_back("register_write " + control + ".loss.dice " + die + " " +
                  number(switchml::loss_seed(plan.seed, port, direction)));
}

// Multicast groups, with one node per receiver.
class Groups {
 public:
  explicit Groups(std::vector<std::string>& lines) : lines_(lines) {}

  void begin(int group) {
    group_ = std::to_string(group);
    lines_.push_back("mc_mgrp_create " + group_);
  }
  void add(std::size_t replica, const std::string& ports) {
    lines_.push_back("mc_node_create " + number(replica) + " " + ports);
    lines_.push_back("mc_node_associate " + group_ + " " + std::to_string(nodes_++));
  }

 private:
  std::vector<std::string>& lines_;
  std::string group_;
  int nodes_ = 0;
};

std::string source_line(const Tables::Source& s, const Tables& job) {
  const std::string match =
      std::to_string(s.port) + " " + number(s.ip) + " " + std::to_string(s.index) + " => ";
  const std::string table = "table_add Switch.source.sources Switch.source.";
  if (s.upper) return table + "upper " + match + std::to_string(job.row() + switchml::kFromAbove);
  const std::uint64_t mark = 1ull << s.worker;
  return table + "worker " + match + number(mark - kOneMissing) + " " + number(~mark) + " " +
         number(static_cast<std::uint64_t>(s.workers) * kOneMissing) + " " + number(s.row) + " " +
         number(s.other) + " " + number(s.again) + " " + std::to_string(job.row());
}

void add_group(const SwitchPlan& plan, const Tables& job, const Tables::Group& group,
               Groups& groups, std::vector<std::string>& lines) {
  groups.begin(static_cast<int>(group.number));
  for (const switchml::Receiver& r : group.receivers) {
    groups.add(r.number, std::to_string(r.port));
    lines.push_back("table_add Copy.receivers Copy.receiver " + number(group.number) + " " +
                    number(r.number) + " => " + text_of(r.mac) + " " + number(r.ip) + " " +
                    number(r.udp) + " " + text_of(plan.mac) + " " + number(plan.ip) + " " +
                    std::to_string(job.row() + switchml::kCopies));
  }
}

std::string cell(const char* counters, int at) {
  return std::string(counters) + " " + std::to_string(at);
}

}  // namespace

std::vector<std::string> commands_of(const SwitchPlan& plan, const std::vector<Tables>& jobs) {
  std::vector<std::string> lines;
  Groups groups(lines);
  std::string every_port;
  for (int p = 0; p < plan.ports; ++p) {
    every_port += (p == 0 ? "" : " ") + std::to_string(p);
    if (p >= std::ssize(plan.loss)) continue;
    const switchml::PortLoss& loss = plan.loss[p];
    add_die(plan, p, Direction::ingress, loss.ingress, lines);
    add_die(plan, p, Direction::egress, loss.egress, lines);
  }
  groups.begin(kEveryPort);
  groups.add(0, every_port);
  for (const switchml::Forward& f : plan.forward)
    lines.push_back("table_add Switch.forwarding Switch.forward " + text_of(f.mac) + " => " +
                    std::to_string(f.port));
  for (const Tables& job : jobs) {
    for (const Tables::Source& s : job.sources) lines.push_back(source_line(s, job));
    for (const Tables::Group& group : job.groups) add_group(plan, job, group, groups, lines);
  }
  return lines;
}

std::vector<std::string> commands_to_count(const SwitchPlan& plan,
                                           const std::vector<Tables>& jobs) {
  std::vector<std::string> lines;
  const auto read = [&](const char* counters, int at) {
    lines.push_back("counter_read " + cell(counters, at));
  };
  for (int p = 0; p < plan.ports; ++p) {
    for (int k = 0; k < switchml::kPortCounterRow; ++k)
      read(kPortCells, p * switchml::kPortCounterRow + k);
    read(kLostCells, p * switchml::kPortCounterRow + kLost);
  }
  for (const Tables& job : jobs) {
    for (int k = 0; k < switchml::kCopies; ++k) read(kJobCells, job.row() + k);
    read(kSentCells, job.row() + switchml::kCopies);
  }
  return lines;
}

switchml::SwitchCounters counters_of(const std::string& answers, const SwitchPlan& plan,
                                     const std::vector<Tables>& jobs) {
  // "Switch.port_counters[3]= (5 bytes, 1 packets)"
  static const std::regex kAnswer(R"((\S+)\[(\d+)\]=\s*(.*))"), kPackets(R"((\d+) packets)");
  std::map<std::string, std::uint64_t> cells;
  for (std::sregex_iterator at(answers.begin(), answers.end(), kAnswer), end; at != end; ++at) {
    const std::string values = (*at)[3];
    std::smatch packets;
    if (std::regex_search(values, packets, kPackets))
      cells[(*at)[1].str() + " " + (*at)[2].str()] = std::stoull(packets[1]);
  }
  switchml::SwitchCounters all;
  for (int p = 0; p < plan.ports; ++p) {
    const int row = p * switchml::kPortCounterRow;
    switchml::PortCounters c;
    c.malformed = cells[cell(kPortCells, row)];
    c.strangers = cells[cell(kPortCells, row + 1)];
    c.lost = cells[cell(kPortCells, row + kLost)] + cells[cell(kLostCells, row + kLost)];
    c.unknown = cells[cell(kPortCells, row + 3)];
    all.ports.push_back(c);
  }
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const int row = jobs[j].row();
    switchml::JobCounters c;
    c.collected = cells[cell(kJobCells, row)];
    c.duplicates = cells[cell(kJobCells, row + 1)];
    c.broadcasts = cells[cell(kJobCells, row + 2)];
    c.retransmissions = cells[cell(kJobCells, row + 3)];
    c.results = cells[cell(kJobCells, row + 4)];
    c.sent = cells[cell(kSentCells, row + switchml::kCopies)];
    c.received = c.collected + c.duplicates + c.broadcasts + c.retransmissions;
    all.jobs.emplace_back(plan.jobs[j].name, c);
  }
  return all;
}

}  // namespace ghostrank::bmv2
