#include "switch/bmv2/entries.h"

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>
#include <string_view>

namespace ghostrank::bmv2 {
namespace {

using switchml::Direction;
using switchml::Mac;
using switchml::SwitchPlan;
using switchml::Tables;

constexpr int kLeaving = 256;  // MOST_PORTS in p4/headers.p4: the way out of port 0
constexpr std::uint64_t kOneMissing = 1ull << 32;  // ONE_MISSING in p4/headers.p4
constexpr int kEveryPort = 65535;                  // EVERY_PORT in p4/bmv2.p4
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
             std::vector<std::string>& registers) {
  if (probability == 0) return;
  const std::string control = direction == Direction::egress ? "Copy" : "Switch";
  const std::string die = std::to_string(port + (direction == Direction::egress ? kLeaving : 0));
  registers.push_back(control + ".probability " + std::to_string(port) + " " +
                      std::to_string(probability));
  registers.push_back(control + ".loss.dice " + die + " " +
                      number(switchml::loss_seed(plan.seed, port, direction)));
}

std::string source_row(const Tables::Source& s, const Tables& job) {
  const std::string match =
      std::to_string(s.port) + " " + number(s.ip) + " " + std::to_string(s.index) + " => ";
  const std::string action = "Switch.source.";
  if (s.upper)
    return action + "upper " + match + number(s.row) + " " + number(s.other) + " " +
           std::to_string(job.row() + switchml::kFromAbove);
  const std::uint64_t mark = 1ull << s.worker;
  return action + "worker " + match + number(mark - kOneMissing) + " " + number(~mark) + " " +
         number(static_cast<std::uint64_t>(s.workers) * kOneMissing) + " " + number(s.row) + " " +
         number(s.other) + " " + number(s.again) + " " + std::to_string(job.row());
}

// A multicast group has one node per receiver, and a table says where its copy goes.
void add_group(const SwitchPlan& plan, const Tables& job, const Tables::Group& group,
               Setup& setup) {
  Setup::Group& copies = setup.groups.emplace_back();
  copies.number = number(group.number);
  for (const switchml::Receiver& r : group.receivers) {
    copies.nodes.push_back(number(r.number) + " " + std::to_string(r.port));
    setup.entries.emplace_back(
        "Copy.receivers", "Copy.receiver " + number(group.number) + " " + number(r.number) +
                              " => " + text_of(r.mac) + " " + number(r.ip) + " " + number(r.udp) +
                              " " + text_of(plan.mac) + " " + number(plan.ip) + " " +
                              std::to_string(job.row() + switchml::kCopies));
  }
}

// The answer to each command, which follows a prompt.
std::vector<std::string> answers_of(const std::string& text) {
  constexpr std::string_view kPrompt = "RuntimeCmd: ";
  std::vector<std::string> answers;
  for (std::size_t at = text.find(kPrompt); at != std::string::npos;) {
    at += kPrompt.size();
    const std::size_t end = text.find(kPrompt, at);
    answers.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    at = end;
  }
  return answers;
}

std::string cell(const char* counters, int at) {
  return std::string(counters) + " " + std::to_string(at);
}

}  // namespace

Setup setup_of_plan(const SwitchPlan& plan) {
  Setup setup;
  std::string every_port = "0";  // replica 0
  for (int p = 0; p < plan.ports; ++p) {
    every_port += " " + std::to_string(p);
    if (p >= std::ssize(plan.loss)) continue;
    const switchml::PortLoss& loss = plan.loss[p];
    add_die(plan, p, Direction::ingress, loss.ingress, setup.registers);
    add_die(plan, p, Direction::egress, loss.egress, setup.registers);
  }
  setup.groups.push_back({std::to_string(kEveryPort), {every_port}});
  for (const switchml::Forward& f : plan.forward)
    setup.entries.emplace_back(
        "Switch.forwarding", "Switch.forward " + text_of(f.mac) + " => " + std::to_string(f.port));
  return setup;
}

Setup setup_of_job(const SwitchPlan& plan, const Tables& job) {
  Setup setup;
  for (const Tables::Source& s : job.sources)
    setup.entries.emplace_back("Switch.source.sources", source_row(s, job));
  for (const Tables::Group& group : job.groups) add_group(plan, job, group, setup);
  return setup;
}

std::vector<std::string> commands_to_add(const Setup& setup) {
  std::vector<std::string> lines;
  for (const std::string& value : setup.registers) lines.push_back("register_write " + value);
  for (const auto& [table, row] : setup.entries) lines.push_back("table_add " + table + " " + row);
  for (const Setup::Group& group : setup.groups) {
    lines.push_back("mc_mgrp_create " + group.number);
    for (const std::string& node : group.nodes) lines.push_back("mc_node_create " + node);
  }
  return lines;
}

std::string refusal_in(const std::string& answers) {
  for (const char* refusal : {"Error:", "Invalid", "Could not"})
    if (const std::size_t at = answers.find(refusal); at != std::string::npos)
      return answers.substr(at, answers.find('\n', at) - at);
  return "";
}

std::vector<std::string> commands_to_undo(const std::vector<std::string>& commands,
                                          const std::string& answers) {
  const std::vector<std::string> given = answers_of(answers);
  std::vector<std::string> lines;
  for (std::size_t c = std::min(commands.size(), given.size()); c-- > 0;) {
    if (!refusal_in(given[c]).empty()) continue;
    std::istringstream words(commands[c]);
    std::string verb, first, second;
    words >> verb >> first >> second;
    const Handles handles = handles_in(given[c]);
    if (verb == "table_add" && !handles.entries.empty())
      lines.push_back("table_delete " + first + " " + handles.entries[0]);
    else if (verb == "mc_node_create" && !handles.nodes.empty())
      lines.push_back("mc_node_destroy " + handles.nodes[0]);
    else if (verb == "mc_mgrp_create")
      lines.push_back("mc_mgrp_destroy " + first);
    else if (verb == "mc_node_associate")
      lines.push_back("mc_node_dissociate " + first + " " + second);
  }
  return lines;
}

Handles handles_in(const std::string& answers) {
  constexpr std::string_view kWith = " with handle ";  // "Entry has been added", "node was created"
  Handles handles;
  for (std::size_t at = 0; (at = answers.find(kWith, at)) != std::string::npos;) {
    const bool node = std::string_view(answers).substr(0, at).ends_with("created");
    at += kWith.size();
    const std::size_t end = answers.find_first_not_of("0123456789", at);
    (node ? handles.nodes : handles.entries).push_back(answers.substr(at, end - at));
  }
  return handles;
}

std::vector<std::string> commands_to_join(const Setup& setup, const Handles& handles) {
  std::vector<std::string> lines;
  std::size_t node = 0;
  for (const Setup::Group& group : setup.groups)
    for (std::size_t n = 0; n < group.nodes.size(); ++n)
      lines.push_back("mc_node_associate " + group.number + " " + handles.nodes.at(node++));
  return lines;
}

std::vector<std::string> commands_to_remove(const Setup& setup, const Handles& handles) {
  std::vector<std::string> lines;
  for (std::size_t e = 0; e < setup.entries.size(); ++e)
    lines.push_back("table_delete " + setup.entries[e].first + " " + handles.entries.at(e));
  std::size_t node = 0;
  for (const Setup::Group& group : setup.groups) {
    for (std::size_t n = 0; n < group.nodes.size(); ++n, ++node) {
      lines.push_back("mc_node_dissociate " + group.number + " " + handles.nodes.at(node));
      lines.push_back("mc_node_destroy " + handles.nodes.at(node));
    }
    lines.push_back("mc_mgrp_destroy " + group.number);
  }
  return lines;
}

std::vector<std::string> commands_to_forget(const switchml::JobPlan& job,
                                            const switchml::JobResources& resources, bool ours) {
  std::vector<std::string> lines;
  for (int row = 2 * resources.first_slot; row < 2 * (resources.first_slot + job.slots); ++row) {
    lines.push_back("register_write Switch.marks.marks " + std::to_string(row) + " 0");
    if (ours) lines.push_back("register_write Switch.marks.numbers " + std::to_string(row) + " 0");
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
