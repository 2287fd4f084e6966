#include "tools/switching/targets/bmv2.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <poll.h>
#include <sstream>
#include <stdexcept>

#include "profiles/error.h"
#include "profiles/input/input_file.h"
#include "switch/ports/pcap_file.h"
#include "tools/switching/targets/p4_compiler.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;
using switchml::JobCounters;
using switchml::JobPlan;
using switchml::PortName;
using switchml::SwitchCounters;
using switchml::SwitchPlan;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{1};  // for the last copies to leave
constexpr int kMostTries = 4;
constexpr int kSlotsOf256 = 4096, kSlots = 16384;
// Frames that wait at a port. simple_switch drops what comes above its 64, which a round of every
// slot at once exceeds.
constexpr const char* kQueues = "set_queue_depth 8192";

int elements_of(const std::optional<SwitchPlan>& plan) {
  constexpr int kUsual = 256;
  if (!plan) return kUsual;
  if (plan->elements != 0) return plan->elements;
  return plan->jobs.empty() ? kUsual : plan->jobs[0].elements;
}

// bmv2 reads X_in.pcap and writes X_out.pcap for port X. Returns the X of every port.
std::vector<std::string> links_of(const std::vector<PortName>& ports,
                                  const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    if (!ports[p].interface.empty()) {
      names.push_back(ports[p].interface);
      continue;
    }
    names.push_back(folder.file("port" + std::to_string(p)));
    const std::string in = names.back() + "_in.pcap";
    if (ports[p].in.empty())
      PcapWriter(in).finish();
    else
      fs::create_symlink(fs::absolute(ports[p].in), in);
    if (!ports[p].out.empty())
      fs::create_symlink(fs::absolute(ports[p].out), names.back() + "_out.pcap");
  }
  return names;
}

// Time from the first frame of all files to the last.
std::chrono::nanoseconds length_of(const std::vector<PortName>& ports) {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max(), last = 0;
  for (const PortName& port : ports) {
    if (port.in.empty()) continue;
    PcapReader reader(port.in);
    while (const auto frame = reader.next()) {
      first = std::min(first, frame->time_ns);
      last = std::max(last, frame->time_ns);
    }
  }
  return std::chrono::nanoseconds(last > first ? last - first : 0);
}

// Sets the link type to Ethernet, because bmv2 writes its files as loopback captures.
void name_link_type(const std::string& path) {
  if (path.empty()) return;
  constexpr std::streamoff kLinkType = 20;
  constexpr std::uint32_t kEthernet = 1;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(kLinkType);
  file.write(reinterpret_cast<const char*>(&kEthernet), sizeof kEthernet);
  if (!file) throw Error(path + ": cannot be written", ErrorKind::environment);
}

void count_frames(const std::string& path, std::uint64_t& frames, std::uint64_t& bytes) {
  if (path.empty()) return;
  PcapReader reader(path);
  while (const auto frame = reader.next()) {
    ++frames;
    bytes += frame->bytes.size();
  }
}

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines;
  std::istringstream text(read_input(file));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

// Deals out the handles that several setups have got together.
std::vector<bmv2::Handles> handles_of(const std::vector<const bmv2::Setup*>& setups,
                                      const bmv2::Handles& given) {
  std::vector<bmv2::Handles> all;
  auto entry = given.entries.begin(), node = given.nodes.begin();
  const auto take = [](auto& next, auto end, std::size_t count) {
    if (end - next < static_cast<std::ptrdiff_t>(count))
      throw Error("bmv2 has not taken all table entries; is its program another one?",
                  ErrorKind::environment);
    const auto first = next;
    next += static_cast<std::ptrdiff_t>(count);
    return std::vector<std::string>(first, next);
  };
  for (const bmv2::Setup* setup : setups) {
    std::size_t nodes = 0;
    for (const bmv2::Setup::Group& group : setup->groups) nodes += group.nodes.size();
    all.push_back({take(entry, given.entries.end(), setup->entries.size()),
                   take(node, given.nodes.end(), nodes)});
  }
  return all;
}

JobCounters operator-(const JobCounters& a, const JobCounters& b) {
  return {.received = a.received - b.received,
          .collected = a.collected - b.collected,
          .duplicates = a.duplicates - b.duplicates,
          .broadcasts = a.broadcasts - b.broadcasts,
          .retransmissions = a.retransmissions - b.retransmissions,
          .sent = a.sent - b.sent,
          .results = a.results - b.results,
          .gaps = a.gaps - b.gaps};
}

}  // namespace

Bmv2Switch::Bmv2Switch(const Bmv2Run& run, std::optional<SwitchPlan> plan)
    : ports_(run.ports),
      has_jobs_(plan.has_value()),
      elements_(elements_of(plan)),
      ours_(has_jobs_ && run.program.empty()),
      plan_(plan ? *std::move(plan) : SwitchPlan{}),
      allocation_(elements_, elements_ == 256 ? kSlotsOf256 : kSlots, ours_),
      gone_(run.ports) {
  plan_.ports = static_cast<int>(ports_.size());
  std::size_t commands = plan_.forward.size();
  try {
    for (const JobPlan& job : plan_.jobs) {
      Admitted& one = admitted_.emplace_back(admitted(job));
      commands += bmv2::commands_to_add(one.setup).size();
    }
  } catch (const std::invalid_argument& error) {
    throw Error(std::string("the plan does not fit the P4 program: ") + error.what());
  }
  std::string program = !run.compiled.empty() ? run.compiled
                        : run.program.empty() ? bmv2_source()
                                              : run.program;
  if (program.ends_with(".p4")) {
    const std::string json = folder_.file("program.json");
    compile_for_bmv2(program, has_jobs_ ? elements_ : 0, json);
    program = json;
  }
  for (const PortName& port : ports_) began_.push_back(table_.of(port.interface));
  const std::vector<std::string> links = links_of(ports_, folder_);
  if (!on_files()) {
    start(program, links, run.entries);
    return;
  }
  // simple_switch starts to read files so long after its start; until then it takes a few hundred
  // commands a second. On a busy machine it takes fewer, and is started again with more time.
  const std::chrono::seconds expected(5 + commands / 200);
  for (files_after_ = expected; files_after_ <= kMostTries * expected; files_after_ += expected) {
    start(program, links, run.entries);
    if (Clock::now() < switch_->began() + files_after_) return;
  }
  throw Error(
      "bmv2 took its commands more slowly than expected and has begun without them; "
      "try again on a machine that is less busy",
      ErrorKind::environment);
}

void Bmv2Switch::start(const std::string& program, const std::vector<std::string>& links,
                       const std::string& entries) {
  switch_.reset();  // before the next one, which has its files
  switch_.emplace(program, links, files_after_);
  switch_->command({kQueues});
  if (!has_jobs_) {
    switch_->command(lines_of(entries));
    return;
  }
  const bmv2::Setup of_plan = bmv2::setup_of_plan(plan_);
  std::vector<const bmv2::Setup*> setups{&of_plan};
  for (const Admitted& job : admitted_) setups.push_back(&job.setup);
  std::vector<bmv2::Handles> handles = set_up(setups);
  for (std::size_t j = 0; j < admitted_.size(); ++j)
    admitted_[j].handles = std::move(handles[j + 1]);
}

// All at once, because every start of the command line takes its time. Where one command is
// refused, takes the others back and throws.
std::vector<bmv2::Handles> Bmv2Switch::set_up(const std::vector<const bmv2::Setup*>& setups) {
  std::vector<std::string> adding, joining;
  std::string added, joined;
  for (const bmv2::Setup* setup : setups) append(adding, bmv2::commands_to_add(*setup));
  try {
    added = switch_->answers(adding);
    SimpleSwitch::check(added);
    std::vector<bmv2::Handles> all = handles_of(setups, bmv2::handles_in(added));
    for (std::size_t s = 0; s < setups.size(); ++s)
      append(joining, bmv2::commands_to_join(*setups[s], all[s]));
    joined = switch_->answers(joining);
    SimpleSwitch::check(joined);
    return all;
  } catch (const Error&) {
    std::vector<std::string> undoing = bmv2::commands_to_undo(joining, joined);
    append(undoing, bmv2::commands_to_undo(adding, added));
    switch_->answers(undoing);
    throw;
  }
}

// A job with its numbers, before the switch is told of it. Throws std::invalid_argument.
Bmv2Switch::Admitted Bmv2Switch::admitted(const JobPlan& job) {
  Admitted one;
  one.resources = allocation_.admit(job);
  one.tables = switchml::tables_of(job, one.resources);
  one.setup = bmv2::setup_of_job(plan_, one.tables);
  return one;
}

void Bmv2Switch::run(const std::vector<switchml::Watch>& watches, const std::atomic<bool>& stop) {
  const auto end = on_files() ? switch_->began() + files_after_ + length_of(ports_) + kGrace
                              : Clock::time_point::max();
  std::vector<pollfd> polled{{switch_->child().output_fd(), POLLIN, 0}};
  for (const switchml::Watch& watch : watches) polled.push_back({watch.fd, POLLIN, 0});
  while (!stop && !stopped_ && !gone_.any() && Clock::now() < end) {
    if (poll(polled.data(), polled.size(), GoneInterface::kPatienceMs) <= 0) continue;
    if (polled[0].revents != 0 && !switch_->child().read_output()) switch_->fail_ended();
    for (std::size_t w = 0; w < watches.size(); ++w)
      if (polled[w + 1].revents != 0) watches[w].ready();
  }
  SwitchCounters counters = read_counters();
  switch_->child().end();
  if (on_files()) count_files(counters);
  last_ = std::move(counters);
  gone_.check();
}

std::string Bmv2Switch::admit(const JobPlan& job) {
  if (!has_jobs_) return "this switch runs table entries of its own, not jobs";
  if (std::string why = reason_to_refuse(plan_, job); !why.empty()) return why;
  Admitted one;
  try {
    one = admitted(job);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  try {
    SwitchPlan of_job = plan_;
    of_job.jobs = {job};
    one.before = bmv2::counters_of(switch_->command(bmv2::commands_to_count(of_job, {one.tables})),
                                   of_job, {one.tables})
                     .jobs[0]
                     .second;
    one.handles = set_up({&one.setup})[0];
  } catch (const Error& error) {
    switch_->answers(bmv2::commands_to_forget(job, one.resources, ours_));
    allocation_.remove(job.name);
    return error.what();
  }
  plan_.jobs.push_back(job);
  admitted_.push_back(std::move(one));
  return {};
}

std::size_t Bmv2Switch::find(const std::string& job) const {
  return static_cast<std::size_t>(std::ranges::find(plan_.jobs, job, &JobPlan::name) -
                                  plan_.jobs.begin());
}

// Empties its slots, too, so that free slots are empty ones.
bool Bmv2Switch::remove(const std::string& name) {
  const std::size_t j = find(name);
  if (j == plan_.jobs.size()) return false;
  const Admitted& one = admitted_[j];
  std::vector<std::string> lines = bmv2::commands_to_remove(one.setup, one.handles);
  append(lines, bmv2::commands_to_forget(plan_.jobs[j], one.resources, ours_));
  switch_->command(lines);
  allocation_.remove(name);
  plan_.jobs.erase(plan_.jobs.begin() + static_cast<std::ptrdiff_t>(j));
  admitted_.erase(admitted_.begin() + static_cast<std::ptrdiff_t>(j));
  return true;
}

bool Bmv2Switch::reset(const std::string& name) {
  const std::size_t j = find(name);
  if (j == plan_.jobs.size()) return false;
  switch_->command(bmv2::commands_to_forget(plan_.jobs[j], admitted_[j].resources, ours_));
  return true;
}

SwitchCounters Bmv2Switch::counters() { return last_ ? *last_ : read_counters(); }

std::vector<switchml::Tables> Bmv2Switch::tables() const {
  std::vector<switchml::Tables> all;
  for (const Admitted& one : admitted_) all.push_back(one.tables);
  return all;
}

SwitchCounters Bmv2Switch::read_counters() {
  SwitchCounters all;
  if (has_jobs_)
    all = bmv2::counters_of(switch_->command(bmv2::commands_to_count(plan_, tables())), plan_,
                            tables());
  all.ports.resize(ports_.size());
  for (std::size_t j = 0; j < admitted_.size(); ++j)
    all.jobs[j].second = all.jobs[j].second - admitted_[j].before;
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    Counters now = table_.of(ports_[p].interface);
    if (now.empty()) continue;  // a file, or gone
    switchml::PortCounters& c = all.ports[p];
    c.received = now["rx_packets"] - began_[p]["rx_packets"];
    c.received_bytes = now["rx_bytes"] - began_[p]["rx_bytes"];
    c.sent = now["tx_packets"] - began_[p]["tx_packets"];
    c.sent_bytes = now["tx_bytes"] - began_[p]["tx_bytes"];
  }
  return all;
}

void Bmv2Switch::count_files(SwitchCounters& counters) const {
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    switchml::PortCounters& c = counters.ports[p];
    name_link_type(ports_[p].out);
    count_frames(ports_[p].in, c.received, c.received_bytes);
    count_frames(ports_[p].out, c.sent, c.sent_bytes);
  }
}

}  // namespace ghostrank
