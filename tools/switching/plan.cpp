#include "tools/switching/plan.h"

#include <arpa/inet.h>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>

#include "profiles/error.h"
#include "profiles/input/yaml.h"

namespace ghostrank {
namespace {

using switchml::JobPlan;
using switchml::Mac;
using switchml::SwitchPlan;

constexpr std::string_view kSchema = "ghostrank/switch/1";

// A mapping that allows only known keys.
class Fields {
 public:
  Fields(const YamlValue& value, std::string_view what,
         std::initializer_list<std::string_view> known)
      : value_(value), what_(what) {
    if (!value.is_map()) fail(value.mark, what_ + " is a mapping, not " + description(value));
    for (const YamlValue& child : value.children) {
      std::string list;
      bool found = false;
      for (const std::string_view name : known) {
        found = found || child.key == name;
        list += (list.empty() ? "" : ", ") + std::string(name);
      }
      if (!found)
        fail(child.key_mark, what_ + " has no key " + quote(child.key) + "; known here: " + list);
    }
  }

  const YamlValue* find(std::string_view name) const { return value_.find(name); }
  const YamlValue& at(std::string_view name) const {
    const YamlValue* found = value_.find(name);
    if (found == nullptr) fail(value_.mark, what_ + " needs a key '" + std::string(name) + "'");
    return *found;
  }
  std::string text(std::string_view name) const {
    const YamlValue& v = at(name);
    if (!v.is_scalar()) fail(v.mark, std::string(name) + " is a text, not " + description(v));
    return v.text;
  }
  int integer(std::string_view name, int low, int high, std::optional<int> standard = {}) const {
    if (standard && find(name) == nullptr) return *standard;
    const YamlValue& v = at(name);
    int number = 0;
    const char* end = v.text.data() + v.text.size();
    const auto [stop, error] = std::from_chars(v.text.data(), end, number);
    if (!v.is_scalar() || error != std::errc{} || stop != end || number < low || number > high)
      fail(v.mark, std::string(name) + " is a number from " + std::to_string(low) + " to " +
                       std::to_string(high) + ", not " + description(v));
    return number;
  }
  bool flag(std::string_view name) const {
    const YamlValue* v = find(name);
    if (v == nullptr) return false;
    if (!v->is_scalar() || (v->text != "true" && v->text != "false"))
      fail(v->mark, std::string(name) + " is true or false, not " + description(*v));
    return v->text == "true";
  }
  // A number of 32 bits, decimal or hexadecimal.
  std::uint32_t number32(std::string_view name) const {
    const YamlValue& v = at(name);
    const bool hex = v.text.starts_with("0x");
    std::uint32_t number = 0;
    const char* end = v.text.data() + v.text.size();
    const auto [stop, error] =
        std::from_chars(v.text.data() + (hex ? 2 : 0), end, number, hex ? 16 : 10);
    if (!v.is_scalar() || error != std::errc{} || stop != end)
      fail(v.mark,
           std::string(name) + " is a number of 32 bits such as 0x1234, not " + description(v));
    return number;
  }
  double share(std::string_view name) const {
    const YamlValue* v = find(name);
    if (v == nullptr) return 0;
    double number = 0;
    const char* end = v->text.data() + v->text.size();
    const auto [stop, error] = std::from_chars(v->text.data(), end, number);
    if (!v->is_scalar() || error != std::errc{} || stop != end || !(number >= 0 && number < 1))
      fail(v->mark, std::string(name) + " is a probability below 1, not " + description(*v));
    return number;
  }
  Mac mac(std::string_view name) const {
    const YamlValue& v = at(name);
    Mac mac{};
    bool good = v.is_scalar() && v.text.size() == 17;
    for (std::size_t i = 0; good && i < mac.size(); ++i) {
      const char* digits = v.text.data() + 3 * i;
      good = std::from_chars(digits, digits + 2, mac[i], 16).ptr == digits + 2 &&
             (i == 5 || digits[2] == ':');
    }
    if (!good)
      fail(v.mark, std::string(name) + " is a MAC address such as 02:00:00:00:00:01, not " +
                       description(v));
    return mac;
  }
  std::uint32_t ip(std::string_view name) const {
    const YamlValue& v = at(name);
    in_addr address{};
    if (!v.is_scalar() || inet_pton(AF_INET, v.text.c_str(), &address) != 1)
      fail(v.mark,
           std::string(name) + " is an IPv4 address such as 10.0.0.1, not " + description(v));
    return ntohl(address.s_addr);
  }
  // The items of a list; none if the key is missing.
  const std::vector<YamlValue>& list(std::string_view name) const {
    static const std::vector<YamlValue> kNone;
    const YamlValue* v = find(name);
    if (v == nullptr) return kNone;
    if (!v->is_list()) fail(v->mark, std::string(name) + " is a list, not " + description(*v));
    return v->children;
  }

 private:
  const YamlValue& value_;
  std::string what_;
};

switchml::Format format_of(const Fields& job) {
  const YamlValue* format = job.find("format");
  if (format == nullptr || (format->is_scalar() && format->text == "udp"))
    return switchml::Format::udp;
  if (format->is_scalar() && format->text == "omnireduce") return switchml::Format::omnireduce;
  if (!format->is_scalar() || format->text != "roce")
    fail(format->mark, "format is udp, roce or omnireduce, not " + description(*format));
  return switchml::Format::roce;
}

constexpr int kMost24 = 0xffffff;
constexpr int kMostNumber = switchml::kMaxWorkers * switchml::kMaxWorkers - 1;  // of a worker

switchml::Worker worker_of(const YamlValue& value, switchml::Format format) {
  if (format != switchml::Format::roce) {
    const Fields w(value, "a worker", {"port", "mac", "ip", "workers"});
    switchml::Worker worker{w.integer("port", 0, 255), w.mac("mac"), w.ip("ip")};
    worker.workers = w.integer("workers", 1, switchml::kMaxWorkers, 1);
    return worker;
  }
  const Fields w(value, "a worker over RoCEv2", {"port", "mac", "ip", "remote_key", "queue_pairs"});
  switchml::Worker worker{w.integer("port", 0, 255), w.mac("mac"), w.ip("ip")};
  worker.remote_key = w.number32("remote_key");
  for (const YamlValue& child : w.list("queue_pairs")) {
    const Fields pair(child, "a queue pair", {"number", "first_sequence"});
    worker.queue_pairs.push_back(
        {static_cast<std::uint32_t>(pair.integer("number", 0, kMost24)),
         static_cast<std::uint32_t>(pair.integer("first_sequence", 0, kMost24, 0))});
  }
  return worker;
}

JobPlan job_of(const YamlValue& value) {
  const Fields f(value, "a job",
                 {"name", "format", "elements", "first_slot", "slots", "worker_port", "workers",
                  "first_worker", "uplink", "guarded", "all_functions"});
  JobPlan job;
  job.name = f.text("name");
  job.format = format_of(f);
  job.elements = f.integer("elements", 1, 256, job.elements);
  job.first_slot = f.integer("first_slot", 0, switchml::kMaxSlots - 1, job.first_slot);
  job.slots = f.integer("slots", 1, switchml::kMaxSlots, job.slots);
  job.worker_port =
      static_cast<std::uint16_t>(f.integer("worker_port", 1, 65520, int{job.worker_port}));
  job.guarded = f.flag("guarded");
  job.all_functions = f.flag("all_functions");
  job.first_worker = f.integer("first_worker", 0, kMostNumber, job.first_worker);
  for (const YamlValue& child : f.list("workers")) {
    job.workers.push_back(worker_of(child, job.format));
  }
  if (const YamlValue* up = f.find("uplink")) {
    const Fields u(*up, "an uplink", {"port", "mac", "ip"});
    job.uplink = switchml::Uplink{u.integer("port", 0, 255), u.mac("mac"), u.ip("ip")};
  }
  return job;
}

// The probability in the steps that switches count in. Refuses one that would be lost.
std::uint16_t in_65536ths(const Fields& f, std::string_view name) {
  const double share = f.share(name);
  const auto steps = static_cast<std::uint16_t>(std::lround(std::min(share * 65536, 65535.0)));
  if (share > 0 && steps == 0)
    fail(f.at(name).mark, std::string(name) +
                              " is less than half of 1/65536 (0.0000153), in whose steps switches "
                              "lose packets; write 0, or 0.00001 or more");
  return steps;
}

// Throws unless `key` is the first of its kind in a list; `seen`: what the earlier entries have.
template <class Key>
void check_first(const Key& key, const std::string& name, const YamlValue& entry,
                 std::map<Key, Mark>& seen) {
  const auto [other, first] = seen.emplace(key, entry.mark);
  if (!first)
    fail(entry.mark, name + " has an entry at " + location(other->second) + "; give it one");
}

}  // namespace

SwitchPlan read_switch_plan(const std::string& path, int ports) {
  const YamlValue root = parse_yaml_file(path);
  const Fields f(root, "a switch",
                 {"schema", "mac", "ip", "elements", "forward", "loss", "seed", "jobs"});
  if (f.text("schema") != kSchema)
    fail(f.at("schema").mark, "the schema of a switch is " + std::string(kSchema));
  SwitchPlan plan;
  plan.ports = ports;
  plan.mac = f.mac("mac");
  plan.ip = f.ip("ip");
  plan.seed = static_cast<std::uint32_t>(f.integer("seed", 0, 1 << 30, 1));
  plan.elements = f.integer("elements", 32, 256, 0);
  if (plan.elements != 0 && !switchml::valid_elements(plan.elements))
    fail(f.at("elements").mark, "elements is 32, 64 or 256");
  std::map<Mac, Mark> macs;
  for (const YamlValue& child : f.list("forward")) {
    const Fields entry(child, "a forwarding entry", {"mac", "port"});
    check_first(entry.mac("mac"), entry.text("mac"), child, macs);
    plan.forward.push_back({entry.mac("mac"), entry.integer("port", 0, ports - 1)});
  }
  plan.loss.resize(ports);
  std::map<int, Mark> lossy;
  for (const YamlValue& child : f.list("loss")) {
    const Fields entry(child, "a loss", {"port", "ingress", "egress"});
    const int port = entry.integer("port", 0, ports - 1);
    check_first(port, "the loss of port " + std::to_string(port), child, lossy);
    plan.loss[port] = {in_65536ths(entry, "ingress"), in_65536ths(entry, "egress")};
  }
  for (const YamlValue& child : f.list("jobs")) {
    const JobPlan job = job_of(child);
    if (const std::string why = reason_to_refuse(plan, job); !why.empty())
      fail(child.mark, "job '" + job.name + "': " + why);
    plan.jobs.push_back(job);
  }
  return plan;
}

JobPlan read_switch_job(std::string_view text, const std::string& name) {
  return job_of(parse_yaml(text, std::make_shared<const Source>(Source{name, name, false})));
}

}  // namespace ghostrank
