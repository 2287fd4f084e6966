#include "tools/switching/targets/dpdk.h"

#include <algorithm>
#include <filesystem>
#include <poll.h>
#include <stdexcept>
#include <string_view>
#include <sys/wait.h>
#include <system_error>

#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "switch/dpdk/entries.h"
#include "tools/report/files/temporary_file.h"
#include "tools/switching/child.h"
#include "tools/switching/targets/p4_compiler.h"

namespace ghostrank {
namespace {

namespace fs = std::filesystem;
using switchml::JobPlan;
using switchml::JobResources;
using switchml::SwitchPlan;

std::string runner() {
  if (std::string path = program_of_ours("ghostrank-dpdk"); !path.empty()) return path;
  throw Error(
      "--target dpdk: this ghostrank was built without DPDK; install libdpdk-dev and build again",
      ErrorKind::environment);
}

std::string own_program(int elements) {
  const std::string name = "switchml_" + std::to_string(elements) + ".spec";
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path :
       {fs::path(GHOSTRANK_SWITCH_PROGRAMS) / name, here / "../share/ghostrank/switch" / name}) {
    if (fs::exists(path)) return path.string();
  }
  throw Error("the program " + name + " is missing; name one with --program",
              ErrorKind::environment);
}

// The folders of the parts that a program of the user's own may include.
std::vector<std::string> folders_of_parts() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> folders;
  for (const fs::path& folder :
       {fs::path(GHOSTRANK_SWITCH_PROGRAMS) / "../slots", here / "../share/ghostrank/switch/slots"})
    if (fs::exists(folder)) folders.push_back(fs::canonical(folder).string());
  return folders;
}

void append(std::vector<std::string>& lines, std::vector<std::string> more,
            const std::string& before = {}) {
  for (std::string& line : more) lines.push_back(before + line);
}

std::vector<switchml::PortName> ports_named(const std::vector<std::string>& texts) {
  std::vector<switchml::PortName> ports;
  for (const std::string& text : texts) ports.push_back(switchml::port_named(text));
  return ports;
}

bool loses_results(const SwitchPlan& plan) {
  return std::any_of(plan.loss.begin(), plan.loss.end(),
                     [](const switchml::PortLoss& loss) { return loss.egress != 0; });
}

// `said` is "error WHAT" if the runner could still report why it ended.
[[noreturn]] void fail_ended(int status, std::string said) {
  constexpr std::string_view kError = "error ";
  const bool environment = WIFEXITED(status) && WEXITSTATUS(status) == 3;
  if (said.starts_with(kError)) {
    while (said.ends_with('\n')) said.pop_back();
    throw Error(said.substr(kError.size()),
                environment ? ErrorKind::environment : ErrorKind::usage);
  }
  throw Error("the DPDK switch ended early" +
                  (WIFSIGNALED(status) ? " by signal " + std::to_string(WTERMSIG(status))
                                       : " with status " + std::to_string(WEXITSTATUS(status))),
              ErrorKind::environment);
}

}  // namespace

DpdkSwitch::DpdkSwitch(const DpdkRun& run, std::optional<SwitchPlan> plan)
    : has_jobs_(plan.has_value()),
      elements_(!plan                 ? 256
                : plan->elements != 0 ? plan->elements
                : !plan->jobs.empty() ? plan->jobs[0].elements
                                      : 256),
      ours_(has_jobs_ && run.program.empty()),
      allocation_(elements_, dpdk::register_slots(elements_), ours_),
      gone_(ports_named(run.ports)) {
  if (plan) plan_ = *std::move(plan);
  plan_.ports = static_cast<int>(run.ports.size());
  std::vector<std::string> lines;
  try {
    if (has_jobs_) append(lines, dpdk::entries_of_plan(plan_));
    for (const JobPlan& job : plan_.jobs) {
      resources_.push_back(allocation_.admit(job));
      append(lines, dpdk::entries_of_job(plan_, switchml::tables_of(job, resources_.back())));
    }
  } catch (const std::invalid_argument& error) {
    throw Error(std::string("the plan does not fit the P4 program: ") + error.what());
  }
  const TemporaryFile made(lines);
  const bool files = switchml::port_named(run.ports[0]).interface.empty();
  std::vector<std::string> words{runner(), "--control"};
  if (run.in_order || (files && loses_results(plan_))) words.push_back("--in-order");
  if (run.as_written) words.push_back("--as-written");
  if (run.cores > 1) words.push_back("--cores=" + std::to_string(run.cores));
  if (has_jobs_) append(words, {"--show=port_counters_0", "--show=job_counters_0"});
  append(words, folders_of_parts(), "--include=");
  const TemporaryFolder folder;
  std::string program = !run.compiled.empty() ? run.compiled
                        : run.program.empty() ? own_program(elements_)
                                              : run.program;
  if (program.ends_with(".p4")) {
    const std::string spec = folder.file("program.spec");
    compile_for_dpdk(program, has_jobs_ ? elements_ : 0, spec);
    program = spec;
  }
  words.push_back(program);
  words.push_back(has_jobs_ ? made.path() : run.entries);
  words.insert(words.end(), run.ports.begin(), run.ports.end());
  child_ = std::make_unique<Child>(std::move(words));
  // The runner answers once it has read the file of entries: the switch then works, or has failed.
  child_->send("commit\n");
  if (child_->receive().empty()) {
    while (child_->read_output()) {
    }
    last_ = child_->output();
    if (const int status = child_->status(); status != 0) fail_ended(status, last_);
  }
}

DpdkSwitch::~DpdkSwitch() = default;

void DpdkSwitch::run(const std::vector<switchml::Watch>& watches, const std::atomic<bool>& stop) {
  std::vector<pollfd> polled{{child_->output_fd(), POLLIN, 0}};
  for (const switchml::Watch& watch : watches) polled.push_back({watch.fd, POLLIN, 0});
  bool told = false;
  while (last_.empty()) {
    if (!told && (stop || gone_.any())) {
      this->stop();
      told = true;
    }
    if (poll(polled.data(), polled.size(), GoneInterface::kPatienceMs) <= 0) continue;
    for (std::size_t w = 0; w < watches.size(); ++w) {
      if (polled[w + 1].revents != 0) watches[w].ready();
    }
    if (polled[0].revents == 0 || child_->read_output()) continue;
    last_ = child_->output();
    if (const int status = child_->status(); status != 0) fail_ended(status, last_);
  }
  gone_.check();
}

std::string DpdkSwitch::command(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  child_->send(text + "commit\n");
  const std::string answer = child_->receive();
  if (answer == "ok") return {};
  return answer.starts_with("error ") ? answer.substr(6) : "the DPDK switch has ended";
}

void DpdkSwitch::forget_sums(const JobPlan& job, const JobResources& resources,
                             std::vector<std::string>& lines) const {
  const std::string rows =
      " " + std::to_string(2 * resources.first_slot) + " " + std::to_string(2 * job.slots);
  lines.push_back("clear marks_marks" + rows);
  if (ours_) lines.push_back("clear marks_numbers" + rows);
}

std::string DpdkSwitch::admit(const JobPlan& job) {
  if (!has_jobs_) return "this switch runs table entries of its own, not jobs";
  if (std::string why = reason_to_refuse(plan_, job); !why.empty()) return why;
  try {
    const JobResources resources = allocation_.admit(job);
    std::vector<std::string> lines =
        dpdk::entries_of_job(plan_, switchml::tables_of(job, resources));
    forget_sums(job, resources, lines);
    lines.push_back("clear job_counters_0 " +
                    std::to_string(resources.job * switchml::kJobCounterRow) + " " +
                    std::to_string(switchml::kJobCounterRow));
    if (std::string why = command(lines); !why.empty()) {
      allocation_.remove(job.name);
      return why;
    }
    plan_.jobs.push_back(job);
    resources_.push_back(resources);
    return {};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

bool DpdkSwitch::remove(const std::string& name) {
  for (std::size_t j = 0; j < plan_.jobs.size(); ++j) {
    if (plan_.jobs[j].name != name) continue;
    std::vector<std::string> lines;
    append(lines, dpdk::entries_of_job(plan_, switchml::tables_of(plan_.jobs[j], resources_[j])),
           "delete ");
    if (!command(lines).empty()) return false;
    allocation_.remove(name);
    plan_.jobs.erase(plan_.jobs.begin() + static_cast<std::ptrdiff_t>(j));
    resources_.erase(resources_.begin() + static_cast<std::ptrdiff_t>(j));
    return true;
  }
  return false;
}

bool DpdkSwitch::reset(const std::string& name) {
  for (std::size_t j = 0; j < plan_.jobs.size(); ++j) {
    if (plan_.jobs[j].name != name) continue;
    std::vector<std::string> lines;
    forget_sums(plan_.jobs[j], resources_[j], lines);
    return command(lines).empty();
  }
  return false;
}

switchml::SwitchCounters DpdkSwitch::counters() {
  std::string text = last_;
  if (text.empty()) {
    child_->send("counters\n");
    text = child_->receive();
  }
  const auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  switchml::SwitchCounters all;
  if (!json.is_object()) return all;
  processor_seconds_ = json.at("processor_seconds");
  const auto& registers = json.at("registers");
  const auto cell = [&](const char* name, int at) {
    return registers.contains(name) ? registers[name].at(at).get<std::uint64_t>() : 0;
  };
  for (int p = 0; p < plan_.ports; ++p) {
    const auto& port = json.at("ports").at(p);
    const auto counted = [&](int k) {
      return cell("port_counters_0", p * switchml::kPortCounterRow + k);
    };
    switchml::PortCounters c;
    c.received = port.at("received");
    c.received_bytes = port.at("received_bytes");
    c.sent = port.at("sent");
    c.sent_bytes = port.at("sent_bytes");
    c.malformed = port.at("short").get<std::uint64_t>() + port.at("overlong").get<std::uint64_t>() +
                  counted(0);
    c.strangers = counted(1);
    c.lost = counted(2);
    c.unknown = counted(3);
    all.ports.push_back(c);
  }
  for (std::size_t j = 0; j < plan_.jobs.size(); ++j) {
    const auto counted = [&](int k) {
      return cell("job_counters_0", resources_[j].job * switchml::kJobCounterRow + k);
    };
    switchml::JobCounters c;
    c.collected = counted(0);
    c.duplicates = counted(1);
    c.broadcasts = counted(2);
    c.retransmissions = counted(3);
    c.results = counted(4);
    c.sent = counted(5);
    c.received = c.collected + c.duplicates + c.broadcasts + c.retransmissions;
    all.jobs.emplace_back(plan_.jobs[j].name, c);
  }
  return all;
}

void DpdkSwitch::stop() { child_->send("stop\n"); }

}  // namespace ghostrank
