// See load/sections/events.h.
#include "profiles/load/sections/events.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/job/switches.h"

namespace ghostrank {
namespace {

using Kind = JobEvent::Kind;

constexpr double kMostSeconds = 1e6, kMostIterations = 1e6, kMostFactor = 1000;
constexpr double kLeastSeconds = 1e-9;
constexpr std::size_t kMostEvents = 1000, kMostName = 64;

constexpr std::array kKeys{
    Key{"at_s", KeyType::number, kAbsent,
        "emulated seconds from the beginning of the measured iterations until it happens", 0,
        kMostSeconds},
    Key{"at_iteration", KeyType::integer, kAbsent,
        "in place of at_s, of a mark, rank or node: it happens when this measured iteration, "
        "counted from 0, begins",
        0, kMostIterations},
    Key{"mark", KeyType::string, kAbsent,
        "a name that appears in the result and in traces; nothing else happens"},
    Key{"rank", KeyType::integer, kAbsent, "the rank that computes more slowly", 0, 1e9},
    Key{"node", KeyType::integer, kAbsent, "the node whose ranks all compute more slowly", 0, 1e9},
    Key{"slow", KeyType::number, kAbsent,
        "of a rank or node: how many times as long the computations take that begin meanwhile", 1,
        kMostFactor},
    Key{"link", KeyType::string, kAbsent,
        "the link that fails or slows down, in both directions, by its name in results, as in "
        "leaf0-spine1"},
    Key{"down_s", KeyType::number, kAbsent, "of a link: how many seconds nothing passes",
        kLeastSeconds, kMostSeconds},
    Key{"rate", KeyType::rate, kAbsent, "of a link: its rate meanwhile, below its own", 0, 1e18},
    Key{"for_s", KeyType::number, kAbsent,
        "of a rank or node, or of a link with a rate: for how many seconds; without it to the end",
        kLeastSeconds, kMostSeconds},
    Key{"for_iterations", KeyType::integer, kAbsent,
        "in place of for_s, beside at_iteration: for how many iterations", 1, kMostIterations},
    Key{"host", KeyType::integer, kAbsent, "the process that ends, by its number", 0, 1e6},
    Key{"kill", KeyType::boolean, kAbsent,
        "of a host: true; the process ends at once, as by SIGKILL"}};

// What happens, by the key that names whom it happens to, and the keys that say how.
struct Form {
  std::string_view subject;
  Kind kind;
  std::string_view one_of, may;  // one of these must be there; separated by blanks
  std::string_view example;
};
constexpr std::array kForms{
    Form{"mark", Kind::mark, "", "at_iteration", "{at_s: 5, mark: x}"},
    Form{"rank", Kind::slow, "slow", "at_iteration for_s for_iterations",
         "{at_s: 3, rank: 7, slow: 1.5}"},
    Form{"node", Kind::slow, "slow", "at_iteration for_s for_iterations",
         "{at_s: 3, node: 2, slow: 1.5}"},
    Form{"link", Kind::link, "down_s rate", "for_s",
         "{at_s: 2, link: leaf0-spine1, down_s: 0.5} or {at_s: 2, link: leaf0-spine1, rate: "
         "100Gbps}"},
    Form{"host", Kind::kill, "kill", "", "{at_s: 4, host: 2, kill: true}"}};

Picoseconds picos(double seconds) { return std::llround(seconds * 1e12); }

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

const Form& form_of(const Settings& in, const Mark& mark) {
  const Form* found = nullptr;
  for (const Form& form : kForms) {
    if (!in.given(form.subject)) continue;
    if (found)
      fail(in.at(form.subject).mark, "events: " + std::string(found->subject) + " and " +
                                         std::string(form.subject) +
                                         " in one event; write an event for each");
    found = &form;
  }
  if (!found)
    fail(mark, "events: nothing happens: add mark, rank, node, link or host, as in " +
                   std::string(kForms[0].example));
  return *found;
}

// Refuses keys that mean nothing to the form, and events without what they need.
void check_keys(const Settings& in, const Form& form, const Mark& mark) {
  const std::string subject(form.subject);
  const std::vector<std::string> how = words(form.one_of);
  std::string said;
  for (const Setting& setting : in.all()) {
    const std::string_view key = setting.key->path;
    if (!setting.given || key == "at_s" || key == subject || is_among(form.may, key)) continue;
    if (std::find(how.begin(), how.end(), key) == how.end())
      fail(setting.mark, "events: " + std::string(key) + " means nothing to an event of a " +
                             subject + "; leave it out; write " + std::string(form.example));
    if (!said.empty())
      fail(setting.mark, "events: " + said + " and " + std::string(key) +
                             " both say what becomes of the " + subject +
                             "; leave one of them out");
    said = key;
  }
  if (said.empty() && !how.empty())
    fail(mark, "events: what becomes of the " + subject + "? add " + join(how, " or ") +
                   ", as in " + std::string(form.example));
}

void read_time(const Settings& in, const JobSpec& spec, const Mark& mark, JobEvent& out) {
  const Setting &at = in.at("at_s"), &iteration = in.at("at_iteration");
  if (at.given == iteration.given)
    fail(mark, std::string("events: ") +
                   (at.given ? "at_s and at_iteration both say when; leave one of them out"
                             : "no time; add at_s, as in {at_s: 5, mark: x}"));
  out.at = picos(at.number);
  if (iteration.given) out.iteration = static_cast<std::uint32_t>(iteration.number);
  if (iteration.given && !spec.jobs.empty())
    fail(iteration.mark,
         "events: at_iteration: each of several jobs has its own iterations; use "
         "at_s");
  if (in.given("for_s") && (iteration.given || in.given("down_s")))
    fail(in.at("for_s").mark, iteration.given
                                  ? "events: for_s beside at_iteration; use for_iterations, or at_s"
                                  : "events: down_s and for_s both say how long; leave for_s out");
  if (in.given("for_iterations") && !iteration.given)
    fail(in.at("for_iterations").mark,
         "events: for_iterations beside at_s; use for_s, or at_iteration");
  if (in.given("for_s")) out.lasts = picos(in.number("for_s"));
  if (in.given("for_iterations"))
    out.iterations = static_cast<std::uint32_t>(in.integer("for_iterations"));
}

std::string duration_text(const JobEvent& event) {
  if (event.iterations != JobEvent::kAlways)
    return " for " + std::to_string(event.iterations) +
           (event.iterations == 1 ? " iteration" : " iterations");
  if (event.lasts == JobEvent::kEver) return "";
  return " for " + short_number(seconds(event.lasts)) + " s";
}

void read_mark(const Settings& in, JobEvent& out) {
  out.what = in.text("mark");
  const bool plain = std::none_of(out.what.begin(), out.what.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
  });
  if (out.what.empty() || out.what.size() > kMostName || !plain)
    fail(in.at("mark").mark, "events: mark: " + quote(out.what) + " is no name of 1 to " +
                                 std::to_string(kMostName) + " printable letters");
}

void read_slow(const Settings& in, const Form& form, const JobSpec& spec, JobEvent& out) {
  const Setting& subject = in.at(form.subject);
  const auto asked = static_cast<std::int64_t>(subject.number);
  const ClusterSpec& cluster = spec.cluster;
  const bool one = form.subject == "rank";
  const int gpus = cluster.gpus_per_node;
  const std::int64_t blocks = cluster.node_of_block.empty() ? std::int64_t{cluster.nodes}
                                                            : std::ssize(cluster.node_of_block);
  const std::int64_t all = one ? blocks * gpus : cluster.nodes;
  const std::string name = std::string(form.subject) + " " + std::to_string(asked);
  if (asked >= all)
    fail(subject.mark, "events: there is no " + name + "; the job trains on " +
                           std::string(form.subject) + "s 0 to " + std::to_string(all - 1));
  if (one) {
    out.ranks = {WorldRank(asked)};
  } else {
    const auto block =
        cluster.node_of_block.empty()
            ? asked
            : std::find(cluster.node_of_block.begin(), cluster.node_of_block.end(), Node(asked)) -
                  cluster.node_of_block.begin();
    if (block == blocks) fail(subject.mark, "events: no job has " + name + "; name one of a job");
    for (int gpu = 0; gpu < gpus; ++gpu) out.ranks.emplace_back(block * gpus + gpu);
  }
  out.factor = in.number("slow");
  out.what = name + " x " + short_number(out.factor) + duration_text(out);
}

// Links as the job's topology has them; made when an event first asks for one.
struct Links {
  SwitchGraph graph;
  CableNames names;
  explicit Links(const ClusterSpec& cluster) : graph(switches_of(cluster)), names(graph) {}
};

void read_link(const Settings& in, const Links& links, JobEvent& out) {
  const CableNames& names = links.names;
  const Setting& link = in.at("link");
  const std::vector<std::uint32_t> found = names.find(link.text);
  if (found.empty()) {
    const std::string near = nearest(link.text, names.all());
    fail(link.mark, "events: there is no link " + quote(link.text) + "; " +
                        (near.empty() ? "one is called " + names.all().front()
                                      : "did you mean " + near + "?"));
  }
  if (found.size() > 1)
    fail(link.mark, "events: two links are called " + quote(link.text) +
                        "; give a switch at their ends another name");
  out.cable = found.front();
  const SwitchGraph::Cable& cable = links.graph.cables[out.cable];
  if (cable.failed)
    fail(link.mark, "events: " + quote(link.text) +
                        " has failed before the start (cluster.topology.failed); leave one of the "
                        "two out");
  if (cable.bps == 0)
    fail(link.mark, "events: " + quote(link.text) +
                        " has no rate, and what has none is not modelled as a link that may fail; "
                        "give it one (cluster.topology)");
  out.bps = in.number("rate");
  if (in.given("down_s")) {
    out.lasts = picos(in.number("down_s"));
    out.what = link.text + " down" + duration_text(out);
    return;
  }
  if (out.bps <= 0 || out.bps >= cable.bps)
    fail(in.at("rate").mark, "events: rate: " + in.text("rate") +
                                 (out.bps <= 0 ? " is none" : " slows nothing") +
                                 "; the link has " + short_number(cable.bps * 1e-9) +
                                 "Gbps: give less, or down_s for a link that fails");
  out.what = link.text + " at " + in.text("rate") + duration_text(out);
}

Links links_of(const Setting& link, const JobSpec& spec) {
  if (is_network(spec.fabric.kind))
    fail(link.mark, "events: links are modelled on fabrics virtual and memory; fabric " +
                        std::string(name_of(spec.fabric.kind)) +
                        " has its own: change those from outside, with a mark beside it");
  if (spec.cluster.topology.kind == TopologySpec::Kind::nonblocking)
    fail(link.mark, "events: there is no link " + quote(link.text) +
                        ": the nodes are joined by one ideal switch; set cluster.topology.kind");
  Links links(spec.cluster);
  if (links.graph.cables.empty())
    fail(link.mark, "events: there is no link " + quote(link.text) + ": this topology has none");
  return links;
}

void read_kill(const Settings& in, const JobSpec& spec, JobEvent& out) {
  const Setting& kill = in.at("kill");
  if (kill.number == 0)
    fail(kill.mark, "events: kill: false does nothing; write kill: true, or leave the event out");
  if (spec.fabric.kind != FabricKind::ofi)
    fail(in.at("host").mark, "events: fabric " + std::string(name_of(spec.fabric.kind)) +
                                 " is one process, which nothing would outlive; a host can die on "
                                 "fabric.kind: ofi");
  out.host = Host(in.small("host"));
  out.what = "host " + in.text("host") + " killed";
}

}  // namespace

std::span<const Key> event_keys() { return kKeys; }

std::shared_ptr<const JobEvents> read_events(const Setting& setting, const JobSpec& spec) {
  if (!setting.raw || setting.raw->kind == YamlValue::Kind::null) return nullptr;
  if (!setting.raw->is_list())
    fail(setting.mark,
         "events is " + description(*setting.raw) + "; write a list, as in [{at_s: 5, mark: x}]");
  if (setting.raw->children.size() > kMostEvents)
    fail(setting.mark, "events: " + std::to_string(setting.raw->children.size()) +
                           " are too many; at most " + std::to_string(kMostEvents) +
                           " are supported");
  std::optional<Links> links;
  JobEvents out;
  for (const YamlValue& one : setting.raw->children) {
    const Settings in(one, kKeys, "event");
    const Form& form = form_of(in, one.mark);
    JobEvent event;
    event.kind = form.kind;
    event.source = location(one.mark);
    check_keys(in, form, one.mark);
    read_time(in, spec, one.mark, event);
    switch (form.kind) {
      case Kind::mark:
        read_mark(in, event);
        break;
      case Kind::slow:
        read_slow(in, form, spec, event);
        break;
      case Kind::link:
        if (!links) links.emplace(links_of(in.at("link"), spec));
        read_link(in, *links, event);
        break;
      case Kind::kill:
        read_kill(in, spec, event);
        break;
    }
    out.all.push_back(std::move(event));
  }
  if (out.all.empty()) return nullptr;
  return std::make_shared<const JobEvents>(std::move(out));
}

}  // namespace ghostrank
