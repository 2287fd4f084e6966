#include "tools/switching/job_switch.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "emulator/control/signals_blocked.h"
#include "emulator/host/link_layer.h"
#include "emulator/host/network_namespace.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/load/sections/network.h"
#include "switch/compiled/pool.h"
#include "tools/switching/control.h"
#include "tools/switching/targets/p4_compiler.h"

namespace ghostrank {
namespace {

// Memory of a job's slots on a switch that the run has started. The P4 program has 4 bytes for an
// element, and 28 beside each set (docs/switch.md); its registers on DPDK have 8 for an element.
std::uint64_t bytes_of_slots(const JobSpec& spec, const SwitchJob& job) {
  const SwitchTarget target = spec.network_switch.target;
  if (!spec.network_switch.started()) return 0;
  const std::uint64_t element = target == SwitchTarget::dpdk ? 8 : 4;
  const std::uint64_t set =
      target == SwitchTarget::compiled
          ? switchml::Pool::bytes_of_set(job.elements, spec.collectives.in_switch.guarded)
          : element * static_cast<std::uint64_t>(job.elements) + 28;
  return 2 * static_cast<std::uint64_t>(job.slots) * set;
}

using nlohmann::ordered_json;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{120};  // DPDK starts slowly on a busy machine
constexpr std::chrono::milliseconds kLook{20};

// User and system time of a process, without its children.
double cpu_seconds_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text(std::istreambuf_iterator<char>(in), {});
  const std::size_t after = text.rfind(')');  // the program's name may hold blanks
  if (after == std::string::npos) return 0;
  std::istringstream fields(text.substr(after + 1));
  std::string word;
  for (int i = 0; i < 11; ++i) fields >> word;  // up to field 13 of proc(5)
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The same for a process and all its descendants.
double cpu_seconds_of_all(pid_t pid) {
  double sum = cpu_seconds_of(pid);
  const std::string id = std::to_string(pid);
  std::ifstream in("/proc/" + id + "/task/" + id + "/children");
  for (pid_t child = 0; in >> child;) sum += cpu_seconds_of_all(child);
  return sum;
}

// "" or what the switch at `socket` says against the request.
std::string ask(const std::string& socket, const ordered_json& request) {
  const std::string answer = ask_switch(socket, request.dump());
  const ordered_json json = ordered_json::parse(answer, nullptr, false);
  if (json.is_object() && json.value("ok", false)) return "";
  return json.is_object() ? json.value("error", answer) : "it answers '" + answer + "'";
}

// "HOST:PORT" of the SwitchML controller that the job names; empty: it names none.
std::string controller_of(const SwitchSpec& sw) {
  return sw.socket.starts_with(kControllerPrefix) ? sw.socket.substr(kControllerPrefix.size()) : "";
}

// The nodes' ends of the links, by port. Turns offloads off there, too.
std::vector<NodeInterface> interfaces_of_nodes(const JobSpec& spec) {
  std::vector<NodeInterface> all;
  for (const Node node : each<Node>(spec.cluster.all_nodes())) {
    const InNamespace inside(namespace_of_node(spec.fabric.namespaces, node));
    for (int nic = 0; nic < spec.network_switch.nics; ++nic) {
      const std::string address = address_of_rail(nic, spec.network_switch.nics);
      const NetworkDevice device = device_of_address(address);
      turn_offloads_off(device.name);
      all.push_back({device.mac, address});
    }
  }
  return all;
}

// The switch's ends, by port.
std::vector<std::string> ports_of(const SwitchSpec& sw, int nodes) {
  constexpr std::string_view kPattern = "{nic}";
  std::vector<std::string> ports;
  for (const Node node : each<Node>(nodes))
    for (int nic = 0; nic < sw.nics; ++nic) {
      std::string& port = ports.emplace_back(namespace_of_node(sw.ports, node));
      if (const std::size_t at = port.find(kPattern); at != std::string::npos)
        port.replace(at, kPattern.size(), std::to_string(nic));
    }
  return ports;
}

}  // namespace

std::unique_ptr<JobSwitch> JobSwitch::start(const JobSpec& spec, Control& control) {
  const SwitchSpec& sw = spec.network_switch;
  if (!sw.started() && sw.socket.empty()) return nullptr;
  try {
    auto started = control.world().rank == 0 ? std::make_unique<JobSwitch>(spec) : nullptr;
    all_gather_or_throw(control, "");
    if (started && !started->children_.empty()) started->watch_children(control);
    return started;
  } catch (const Error& error) {
    control.fail("host " + std::to_string(control.world().rank) + ": " + error.what());
    throw;
  }
}

JobSwitch::JobSwitch(const JobSpec& spec)
    : spec_(spec), tree_(spec.network_switch, spec.cluster.all_nodes()) {
  const SwitchSpec& sw = spec.network_switch;
  if (sw.started()) {
    start_children(sw);
    for (int at = 0; at < tree_.switches(); ++at) await_child(at);
    return;
  }
  sockets_ = {sw.socket};
  if (!controller_of(sw).empty()) return;  // asked when a job enters its session
  if (const std::string why = ask(sw.socket, {{"do", "counters"}}); !why.empty())
    throw Error("the switch at " + sw.socket + " does not answer as one: " + why,
                ErrorKind::environment);
}

// An external switch forgets the job; those that were started end.
JobSwitch::~JobSwitch() {
  if (!children_.empty()) {
    watcher_ = {};
    children_.clear();
    return;
  }
  if (!controller_of(spec_.network_switch).empty()) return;  // its next session ends this one
  for (const auto& [at, name] : admitted_) {
    try {
      ask(sockets_[at], {{"do", "remove"}, {"job", name}});
    } catch (const Error&) {  // it is gone, and the job with it
    }
  }
}

void JobSwitch::start_children(const SwitchSpec& sw) {
  folder_ = std::make_unique<TemporaryFolder>();
  const std::vector<NodeInterface> nodes = interfaces_of_nodes(spec_);
  compiled_ = compiled_program(sw);
  const std::vector<std::vector<std::string>> ports = lay_cables(sw);
  for (int at = 0; at < tree_.switches(); ++at) {
    sockets_.push_back(folder_->file("switch" + std::to_string(at) + ".sock"));
    children_.push_back(start_child(sw, at, ports[at], nodes));
  }
}

// What the P4 compiler makes of their program, once for all of them: it may take longer than a
// switch may to start. Empty: there is nothing to compile.
std::string JobSwitch::compiled_program(const SwitchSpec& sw) const {
  const bool bmv2 = sw.target == SwitchTarget::bmv2;
  const std::string source = bmv2 && sw.program.empty() ? bmv2_source() : sw.program;
  if (!source.ends_with(".p4")) return "";
  const int elements = sw.entries.empty() ? spec_.collectives.in_switch.packet_elements : 0;
  std::string result = folder_->file(bmv2 ? "program.json" : "program.spec");
  bmv2 ? compile_for_bmv2(source, elements, result) : compile_for_dpdk(source, elements, result);
  return result;
}

// The interfaces of every switch, by port; makes those between leaves and the spine.
std::vector<std::vector<std::string>> JobSwitch::lay_cables(const SwitchSpec& sw) {
  const std::vector<std::string> all = ports_of(sw, spec_.cluster.all_nodes());
  if (!tree_.has_spine()) return {all};
  spine_space_.emplace();
  std::vector<std::vector<std::string>> ports;
  std::vector<std::string> of_spine;
  for (int leaf = 0; leaf + 1 < tree_.switches(); ++leaf) {
    ports.emplace_back(all.begin() + tree_.begin(leaf), all.begin() + tree_.end(leaf));
    // The process makes the name its own: other runs may have leaves there, too.
    const std::string cable = "leaf" + std::to_string(leaf) + "." + std::to_string(getpid());
    cables_.push_back(std::make_unique<VethCable>(VethCable::End{cable, sw.network_namespace},
                                                  VethCable::End{cable, spine_space_->path()}));
    ports.back().push_back(cable);
    of_spine.push_back(cable);
  }
  ports.push_back(std::move(of_spine));
  return ports;
}

std::unique_ptr<Child> JobSwitch::start_child(const SwitchSpec& sw, int at,
                                              const std::vector<std::string>& ports,
                                              const std::vector<NodeInterface>& nodes) const {
  const bool own = !sw.entries.empty();
  const std::string tables =
      folder_->file("switch" + std::to_string(at) + (own ? ".entries" : ".yaml"));
  write_lines(tables, own ? entries_for(sw.entries, nodes) : plan_lines(sw, at, nodes));
  const bool spine = at + 1 == tree_.switches() && tree_.has_spine();
  const InNamespace inside(spine ? spine_space_->path() : sw.network_namespace);
  std::string names;
  for (const std::string& port : ports) {
    turn_offloads_off(port);
    names += (names.empty() ? "" : ",") + port;
  }
  std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe").string(),
                                 "switch",
                                 "run",
                                 "--target",
                                 std::string(name_of(sw.target)),
                                 own ? "--entries" : "--plan",
                                 tables,
                                 "--ports",
                                 names,
                                 "--socket",
                                 sockets_[at],
                                 "--with-parent"};
  if (!sw.program.empty()) words.insert(words.end(), {"--program", sw.program});
  if (!compiled_.empty()) words.insert(words.end(), {"--compiled", compiled_});
  return std::make_unique<Child>(std::move(words));
}

std::vector<std::string> JobSwitch::plan_lines(const SwitchSpec& sw, int at,
                                               const std::vector<NodeInterface>& nodes) const {
  const std::uint64_t seed = sw.loss_seed + at;  // each loses others
  std::vector<std::string> lines{
      "schema: ghostrank/switch/1",
      "mac: " + sw.mac,
      "ip: " + sw.address,
      "seed: " + std::to_string(seed % (1 << 30)),
      "elements: " + std::to_string(spec_.collectives.in_switch.packet_elements),
      "forward:"};
  for (int n = 0; n < std::ssize(nodes); ++n)
    lines.push_back("  - {mac: " + nodes[n].mac +
                    ", port: " + std::to_string(tree_.towards(at, n)) + "}");
  if (sw.loss > 0) lines.emplace_back("loss:");
  for (int p = 0; sw.loss > 0 && p < tree_.ports(at); ++p)
    lines.push_back("  - {port: " + std::to_string(p) + ", ingress: " + number_text(sw.loss) +
                    ", egress: " + number_text(sw.loss) + "}");
  return lines;
}

// Waits until the switch answers. Says what it said if it ends instead; that went to stderr, too.
void JobSwitch::await_child(int at) {
  Child& child = *children_[at];
  const std::string& socket = sockets_[at];
  const std::string who = tree_.name(at) + " of switch.target ";
  const auto until = steady_clock::now() + kPatience;
  while (steady_clock::now() < until) {
    if (child.wait_output(kLook) && !child.read_output())
      throw Error(who + "ended before the job began; its error is above", ErrorKind::environment);
    try {
      if (std::filesystem::exists(socket) && ask(socket, {{"do", "counters"}}).empty()) return;
    } catch (const Error&) {  // it does not listen yet
    }
  }
  throw Error(who + "does not serve within " + std::to_string(kPatience.count()) + " s",
              ErrorKind::environment);
}

void JobSwitch::watch_children(Control& control) {
  const SignalsBlocked blocked;
  watcher_ = std::jthread([this, &control](const std::stop_token& over) {
    const auto look = 10 * kLook / children_.size();  // all of them in five rounds a second
    while (!over.stop_requested()) {
      for (int at = 0; at < tree_.switches(); ++at) {
        Child& child = *children_[at];
        if (!child.wait_output(look) || child.read_output()) continue;
        return control.fail(tree_.name(at) + " that the run has started (switch.target) has ended",
                            Stop::machine);
      }
    }
  });
}

// Enters the job's workers into a session of the controller.
std::string JobSwitch::enter_session(const SwitchJob& job) {
  const SwitchSpec& sw = spec_.network_switch;
  if (!admitted_.empty())
    return "a SwitchML controller serves one group at a time, on one rail, and the job has more; "
           "let the scheme serve one (collectives.groups)";
  const std::string program = program_of_ours("ghostrank-controller");
  if (program.empty())
    return "this ghostrank was built without gRPC, which controllers speak; install libgrpc++-dev "
           "and build again";
  std::random_device random;  // a number that no earlier session has
  std::vector<std::string> words{program, controller_of(sw), std::to_string(random()),
                                 std::to_string(job.elements)};
  for (const SwitchJob::Worker& worker : job.workers) words.push_back(worker.mac + "," + worker.ip);
  Child child(std::move(words));
  while (child.read_output()) {
  }
  std::istringstream said(child.output());
  std::string line, mac, ip;
  std::getline(said, line);
  if (child.status() != 0) return line;
  std::istringstream(line) >> mac >> ip;
  if (ip != sw.address)
    return "its controller says that it has the address " + ip + ", and not switch.address";
  if (!sw.mac.empty() && mac != sw.mac)
    return "its controller says that it has the MAC address " + mac + ", and not switch.mac";
  admitted_.emplace_back(0, job.name);
  return "";
}

std::string JobSwitch::admit(const SwitchJob& job) {
  if (!spec_.network_switch.entries.empty()) return "";  // they say it all
  if (!controller_of(spec_.network_switch).empty())
    return job.format.empty() ? enter_session(job)
                              : "the program that SwitchML's controller sets up does not know its "
                                "packets; use switch.target: compiled or dpdk";
  if (const std::string why = tree_.reason_to_refuse(job); !why.empty()) return why;
  for (const SwitchPart& part : tree_.parts_of(job))
    if (const std::string why = admit_part(job, part); !why.empty())
      return tree_.has_spine() ? tree_.name(part.at) + ": " + why : why;
  return "";
}

std::string JobSwitch::admit_part(const SwitchJob& job, const SwitchPart& part) {
  const SwitchSpec& sw = spec_.network_switch;
  ordered_json told{{"name", job.name},
                    {"format", job.format.empty() ? "udp" : job.format},
                    {"elements", job.elements},
                    {"first_slot", job.first_slot},
                    {"slots", job.slots},
                    {"worker_port", part.worker_port},
                    {"guarded", spec_.collectives.in_switch.guarded},
                    {"all_functions", job.all_functions}};
  if (part.first_worker > 0) told["first_worker"] = part.first_worker;
  for (const SwitchPart::Member& member : part.members) {
    ordered_json& worker = told["workers"].emplace_back();
    worker = {{"port", member.port}, {"mac", member.mac}, {"ip", member.ip}};
    if (member.workers > 1) worker["workers"] = member.workers;
  }
  if (part.uplink >= 0)
    told["uplink"] = {{"port", part.uplink}, {"mac", sw.mac}, {"ip", sw.address}};
  const std::string why = ask(sockets_[part.at], {{"do", "admit"}, {"job", told}});
  if (!why.empty()) return why;
  admitted_.emplace_back(part.at, job.name);
  memory_bytes_ += bytes_of_slots(spec_, job);
  return "";
}

double JobSwitch::processor_seconds() {
  if (children_.empty()) return -1;
  double sum = 0;
  for (const std::unique_ptr<Child>& child : children_) sum += cpu_seconds_of_all(child->pid());
  return sum;
}

}  // namespace ghostrank
