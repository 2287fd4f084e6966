// ghostrank schedule: shows the messages of one rank in one collective as a table or as JSON, draws
// all ranks, and proves with symbols that the collective is correct.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "collectives/check/checker.h"
#include "collectives/exchange/goal.h"
#include "collectives/exchange/msccl.h"
#include "collectives/exchange/render.h"
#include "collectives/library.h"
#include "collectives/nccl/group.h"
#include "collectives/node_links.h"
#include "profiles/algorithms/algorithms.h"
#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/load/files/nccl_graph.h"
#include "profiles/load/files/nccl_topology.h"
#include "profiles/load/files/node_links.h"
#include "profiles/planners/shared/machine_memory.h"
#include "tools/report/files/output_files.h"
#include "tools/report/pictures/schedule_picture.h"
#include "tools/text/humane.h"
#include "tools/text/plain_word.h"
#include "tools/text/table.h"
#include "tools/verbs.h"
#include "tools/verbs/bench/table.h"
#include "tools/verbs/counts.h"
#include "tools/watch/patience.h"

namespace ghostrank {
namespace {

// The checker's cost grows with the number of elements, and its proof repeats from chunk to chunk.
constexpr std::uint64_t kMaxCheckedCount = 4096;

struct ScheduleFlags {
  std::string collective, library = "generic", algorithm = "auto", json, svg, counts;
  std::string protocol = "auto", node = "auto", redop = "sum", type, links;
  std::vector<int> gpus;
  std::vector<std::string> environment, with;
  int ranks = 0, ranks_per_node = 0, channels = 0, max_channels = 0;
  GroupRank rank = 0, root = 0;
  std::uint64_t count = 1 << 20, slice = 0;
  std::uint32_t element_bytes = 4, credits = 0;
  std::vector<std::string> plugins;
  std::string form, output = "-";
  bool check = false, count_given = false, root_given = false;
};

std::string known_collectives() {
  std::string known;
  for (int i = 0; i < kFuncs; ++i) {
    known += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<Func>(i)));
  }
  return known;
}

Func parse_func(const std::string& name) {
  for (int i = 0; i < kFuncs; ++i) {
    if (plain_word(name_of(static_cast<Func>(i))) == plain_word(name)) return static_cast<Func>(i);
  }
  throw Error("there is no collective '" + name + "'; known are " + known_collectives());
}

bool read_flags(const Argv& argv, ScheduleFlags& flags) {
  CLI::App app("Show the messages of one rank in one collective.", "ghostrank schedule");
  app.add_option("collective", flags.collective, known_collectives())
      ->required()
      ->type_name("COLLECTIVE");
  app.add_option("--library", flags.library, "family of algorithms")->capture_default_str();
  app.add_option("--algorithm", flags.algorithm,
                 "ring, ...; auto: the library's own choice; lib/name; x.xml: an MSCCL file")
      ->capture_default_str();
  app.add_option("--plugin", flags.plugins, "shared object with algorithms of your own")
      ->type_name("FILE");
  app.add_option("--ranks", flags.ranks, "size of the group")
      ->required()
      ->check(between(1, 1 << 24));
  app.add_option("--rank", flags.rank, "rank whose schedule is shown")->capture_default_str();
  app.add_option("--root", flags.root, "root of a broadcast, reduce, gather or scatter")
      ->capture_default_str();
  add_size(app, "--count", flags.count, "elements, as NCCL counts them (default 1M)");
  app.add_option(
         "--counts", flags.counts,
         "all_gather_v: elements of every rank; all_to_all_v: row by row, elements from rank "
         "i to rank j")
      ->type_name("5,0,7,...|FILE");
  auto* bytes = app.add_option("--element-bytes", flags.element_bytes, "bytes of one element")
                    ->capture_default_str()
                    ->check(between(1, 1024));
  app.add_option("--datatype", flags.type,
                 "type of the elements, in place of their bytes: half, int64, f8e4m3, ...")
      ->excludes(bytes);
  app.add_option(
         "--op", flags.redop,
         "what a reduction computes, by which nccl chooses: sum, prod, min, max, avg, mulsum")
      ->capture_default_str();
  app.add_option("--channels", flags.channels,
                 "channels the data is split over (default: 1, or those of an nccl node)")
      ->check(between(1, 1024));
  app.add_option("--max-channels", flags.max_channels,
                 "nccl: at most so many of them (default: the tuner's choice)")
      ->check(between(1, 1024));
  app.add_option("--protocol", flags.protocol,
                 "nccl: Simple, LL or LL128; auto: the tuner's choice")
      ->capture_default_str();
  app.add_option("--node", flags.node,
                 "nccl: kind of node, such as hgx-h100-400g, or the path of a graph dump (.xml)")
      ->capture_default_str();
  auto* links = app.add_option("--links", flags.links,
                               "blink: links between a node's GPUs: dgx-1p, dgx-1v or a CSV file "
                               "a,b,rate; without --ranks-per-node all ranks are on one node")
                    ->type_name("NAME|FILE");
  app.add_option("--gpus", flags.gpus, "blink: GPUs of the node, by rank (default: 0, 1, ...)")
      ->type_name("0,3,5")
      ->delimiter(',')
      ->needs(links);
  app.add_option("--env", flags.environment, "nccl: one of its environment variables")
      ->type_name("NAME=VALUE");
  app.add_option("--with", flags.with,
                 "nccl: a further call of the same ncclGroup, of the same type; give it several "
                 "times")
      ->type_name("COLLECTIVE:COUNT");
  app.add_option("--ranks-per-node", flags.ranks_per_node, "consecutive ranks on one node")
      ->check(between(1, 1 << 24));
  add_size(app, "--slice", flags.slice, "cut blocks into messages of at most this many bytes");
  app.add_option("--credits", flags.credits, "messages in flight per connection; 0: any number")
      ->check(between(0, 1'000'000));
  app.add_flag("--check", flags.check, "prove that every rank ends with every contribution once")
      ->group("Output");
  app.add_option("--json", flags.json, "messages per channel and peer; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--picture", flags.svg, "who sends to whom, all ranks, as SVG; - is stdout")
      ->type_name("FILE|-")
      ->group("Output");
  app.add_option("--export", flags.form,
                 "the collective of all ranks: goal (LogGOPSim) or msccl (XML)")
      ->check(one_of({"goal", "msccl"}))
      ->type_name("goal|msccl")
      ->group("Output");
  app.add_option("--output", flags.output, "where --export goes; - is stdout")
      ->capture_default_str()
      ->type_name("FILE|-")
      ->group("Output");
  app.footer(
      "Examples:\n"
      "  ghostrank schedule allreduce --algorithm ring --ranks 8 --rank 3 --count 1M\n"
      "  ghostrank schedule allreduce --library nccl-2.30 --protocol LL --ranks 8 --json -\n"
      "  ghostrank schedule allreduce --library nccl-2.30 --ranks 8 --with allreduce:64K\n"
      "  ghostrank schedule all_gather --ranks 6 --count 1000 --check --json -\n"
      "  ghostrank schedule allreduce --algorithm double_tree --ranks 16 --picture tree.svg\n"
      "  ghostrank schedule all_gather_v --ranks 3 --counts 5,0,7\n"
      "  ghostrank schedule allreduce --algorithm mine.xml --ranks 8 --check\n"
      "  ghostrank schedule allreduce --algorithm blink --ranks 4 --links dgx-1v --gpus 0,1,2,5\n"
      "  ghostrank schedule allreduce --ranks 8 --count 8M --export msccl --output ring.xml");
  if (!parse(app, argv)) return false;
  flags.count_given = app.count("--count") > 0;
  flags.root_given = app.count("--root") > 0;
  return true;
}

nlohmann::ordered_json json_of(const RunsByConnection& connections) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [connection, runs] : connections)
    json.push_back(
        {{"channel", connection.first}, {"peer", connection.second}, {"messages", runs}});
  return json;
}

std::string json_of(const RankMessages& messages) {
  const nlohmann::ordered_json json{{"sends", json_of(messages.sends)},
                                    {"recvs", json_of(messages.recvs)}};
  return json.dump() + "\n";
}

std::optional<Protocol> parse_protocol(const std::string& name) {
  if (plain_word(name) == "auto") return std::nullopt;
  for (const Protocol protocol : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    if (plain_word(name_of(protocol)) == plain_word(name)) return protocol;
  }
  throw Error("there is no protocol '" + name + "'; known are Simple, LL, LL128 and auto");
}

// Refuses a dump that does not fit: the library would silently ignore it.
void check_graph_fits(const NcclGraphs& graphs, const ScheduleFlags& flags) {
  const int per_node = std::max(1, flags.ranks_per_node), gpus = graphs.node.gpus;
  if (per_node != gpus || flags.ranks % gpus != 0)
    throw Error("the graph dump " + flags.node + " is of a node with " + std::to_string(gpus) +
                " GPUs; give --ranks-per-node " + std::to_string(gpus) +
                " and a multiple of it as --ranks");
}

// The links of --links between the GPUs of --gpus, which have the numbers of a node's ranks then.
std::shared_ptr<const NodeLinks> links_of(const ScheduleFlags& flags, int per_node) {
  if (flags.links == "none") {
    if (!flags.gpus.empty()) throw Error("--gpus: which of a node's GPUs matters with links alone");
    return nullptr;
  }
  const std::optional<NodeLinks> all = find_node_links(flags.links, "");
  if (!all)
    throw Error("--links " + flags.links +
                ": there is no such node or file; write dgx-1p, dgx-1v or the path of a CSV file "
                "a,b,rate");
  std::vector<int> gpus = flags.gpus;
  for (int gpu = 0; flags.gpus.empty() && gpu < per_node; ++gpu) gpus.push_back(gpu);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (gpus[i] < 0 || gpus[i] >= all->gpus || std::count(gpus.begin(), gpus.end(), gpus[i]) > 1)
      throw Error("--gpus: GPU " + std::to_string(gpus[i]) + " is " +
                  (gpus[i] >= 0 && gpus[i] < all->gpus ? "there twice" : "not on the node") +
                  "; it has 0 to " + std::to_string(all->gpus - 1));
  if (static_cast<int>(gpus.size()) != per_node)
    throw Error("--gpus names " + std::to_string(gpus.size()) + " GPUs, and a node has " +
                std::to_string(per_node) + " ranks; make them agree");
  return std::make_shared<const NodeLinks>(links_among(*all, gpus));
}

// Refuses flags that the algorithm's library does not know.
Communicator communicator(const ScheduleFlags& flags, const std::string& library) {
  Communicator comm;
  const bool nccl = library_named(library) == Library::nccl;
  if (!nccl && (flags.max_channels > 0 || flags.protocol != "auto" || flags.node != "auto" ||
                !flags.environment.empty() || !flags.with.empty())) {
    throw Error(
        "--protocol, --max-channels, --node, --env and --with belong to the libraries nccl-2.28 "
        "and nccl-2.30, not to '" +
        library + "'");
  }
  const bool file = library == "msccl";
  const bool rules = has_own_rules(library_named(library));
  if ((nccl || rules || file) && (flags.slice > 0 || (flags.credits > 0 && !file))) {
    throw Error("library '" + library +
                "' has slices and credits of its own; leave out "
                "--slice and --credits");
  }
  if ((rules || file) && flags.channels > 0) {
    throw Error("library '" + library + "' has channels of its own; leave out --channels");
  }
  comm.protocol = parse_protocol(flags.protocol);
  comm.max_channels = flags.max_channels;
  if (is_nccl_graph_file(flags.node)) {
    const std::string text = read_nccl_graph_file(flags.node, "");
    if (is_nccl_topology_text(text)) {
      comm.machine = parse_nccl_topology(text, flags.node);
    } else {
      comm.graphs = parse_nccl_graphs(text, flags.node);
      check_graph_fits(*comm.graphs, flags);
    }
  } else {
    comm.node = flags.node;
  }
  if (!flags.links.empty() && library != kSchemes)
    throw Error("--links and --gpus belong to blink; name it, or leave them out");
  const int per_node =
      flags.ranks_per_node > 0 || flags.links.empty() ? flags.ranks_per_node : flags.ranks;
  if (!flags.links.empty()) comm.links = links_of(flags, per_node);
  comm.environment = environment_of(flags.environment);
  comm.channels = flags.channels;
  comm.slice_bytes = flags.slice;
  comm.flow_control.credits = flags.credits;
  if (per_node > 0) {
    for (int r = 0; r < flags.ranks; ++r) comm.node_of.push_back(r / per_node);
  }
  return comm;
}

// The call and those of --with, in the order of submission.
std::shared_ptr<const std::vector<Collective>> together(const ScheduleFlags& flags,
                                                        const Collective& c) {
  if (flags.with.empty()) return nullptr;
  std::vector<Collective> calls{c};
  for (const std::string& text : flags.with) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto count = parse_size(text.substr(std::min(colon + 1, text.size())));
    Collective& other = calls.emplace_back(c);
    other.func = parse_func(text.substr(0, colon));
    if (!count || *count == 0)
      throw Error("--with " + text + " has no count; write COLLECTIVE:COUNT, as in allreduce:4M");
    other.count = *count;
    if (!reduces(other.func)) other.reduction = Reduction::sum;
  }
  for (const Collective& call : calls)
    if (!nccl_plans_together(call.func))
      throw Error("--with: " + std::string(name_of(call.func)) +
                  " is not planned together with others of a group: its channels and messages do "
                  "not depend on them; leave it out");
  return std::make_shared<const std::vector<Collective>>(std::move(calls));
}

// A user's own algorithm may have no formula.
std::string formula(std::string_view text) { return text.empty() ? "" : " = " + std::string(text); }

std::string element_count(const Collective& c) {
  const std::uint64_t count = is_ragged(c.func) ? call_elements(c) : c.count;
  return humane_count(static_cast<double>(count)) + " elements";
}

// What the elements belong to, for calls with unequal blocks.
std::string extent(const Collective& c) {
  if (c.func == Func::all_gather_v) return " in all";
  return c.func == Func::all_to_all_v ? " from a rank on average" : "";
}

// The algorithm that a row's schedule plays.
std::string name_of(const Algorithm& row, const Schedule& schedule) {
  return schedule.played().empty() ? std::string(row.name) : schedule.played();
}
std::string title_of(const Algorithm& row, const Schedule& schedule) {
  return std::string(row.library) + " " + name_of(row, schedule) + " " +
         std::string(name_of(row.func));
}

// Turns a library's refusal into a usage error.
std::unique_ptr<Schedule> make(const Algorithm& row, const Collective& c,
                               const Communicator& comm) {
  try {
    return row.make(c, comm);
  } catch (const std::invalid_argument& error) {
    throw Error(error.what());
  }
}

// What a call without a closed form costs is found by walking up to so many steps of all ranks, and
// by checking up to so many steps and elements: a second or so each.
constexpr std::uint64_t kMostWalked = 30'000'000, kMostChecked = 1'000'000;

std::uint64_t steps_of_all_ranks(const Schedule& schedule) {
  std::uint64_t steps = 0;
  for (GroupRank r = 0; r < schedule.collective().size; ++r)
    for (int a = 0; a < schedule.actors(r); ++a)
      steps += static_cast<std::uint64_t>(schedule.actor(r, a).steps);
  return steps;
}

// Payload of all ranks; nullopt: too many steps.
std::optional<std::uint64_t> walked_bytes(const Schedule& schedule) {
  if (steps_of_all_ranks(schedule) > kMostWalked) return std::nullopt;
  std::uint64_t elements = 0;
  for (GroupRank r = 0; r < schedule.collective().size; ++r)
    for (int a = 0; a < schedule.actors(r); ++a) {
      Step step;
      for (int k = 0; k < schedule.actor(r, a).steps; ++k) {
        schedule.next_step(r, a, k, step);
        elements += step.send.count * static_cast<std::uint64_t>(step.send_to.size());
      }
    }
  return elements * schedule.collective().element_bytes;
}

// Steps: the rounds of the smallest call of the algorithm on these nodes; nullopt: too many.
std::optional<int> walked_steps(const Algorithm& shown, const Schedule& schedule,
                                Communicator comm) {
  Collective c = schedule.collective();
  c.count = std::min<std::uint64_t>(c.count, 1);
  c.counts = shrink(c.counts, 1);
  comm.protocol = schedule.protocol();
  comm.together.reset();
  comm.slice_bytes = 0;
  comm.flow_control = {};
  if (library_named(shown.library) != Library::nccl) comm.channels = 1;
  const std::unique_ptr<Schedule> least = make(shown, c, comm);
  std::uint64_t elements = 0;
  for (GroupRank r = 0; r < c.size; ++r) elements += work_elements(c, r);
  if (std::max(elements, steps_of_all_ranks(*least)) > kMostChecked) return std::nullopt;
  return check(*least).rounds;
}

// Bytes by the closed form. Where 64 bits might not hold them: those of a smaller call, scaled.
double bytes_by_form(const Algorithm& row, Collective c) {
  constexpr double kMost = 0x1p58;  // of n n S; no form has 64 times as much
  double times = 1;
  const double each = std::pow(c.size, 2) * c.element_bytes;
  for (; each * static_cast<double>(c.count) > kMost; times *= 2) c.count /= 2;
  return times * static_cast<double>(row.cost(c).bytes);
}

void show(const Algorithm& row, const Schedule& schedule, const Communicator& comm,
          GroupRank rank) {
  const Collective& c = schedule.collective();
  // For a row that chooses an algorithm, show the formulas of its choice.
  const Algorithm& shown = played_row(row, schedule);
  const Paint paint = paint_for(STDOUT_FILENO);
  std::vector<Fact> facts{{"group", std::to_string(c.size) + " ranks, " + element_count(c) +
                                        " of " + std::to_string(c.element_bytes) + " B" +
                                        extent(c)}};
  std::optional<int> steps;
  std::optional<double> bytes;
  if (shown.cost) {
    steps = shown.cost(c).steps;
    bytes = bytes_by_form(shown, c);
  } else {
    steps = walked_steps(shown, schedule, comm);
    if (const auto walked = walked_bytes(schedule)) bytes = static_cast<double>(*walked);
  }
  if (steps) facts.push_back({"steps", std::to_string(*steps) + formula(shown.steps_formula)});
  if (bytes)
    facts.push_back(
        {"bytes sent", humane_bytes(*bytes) + " by all ranks" + formula(shown.bytes_formula)});
  std::printf("%s\n%s\n", paint.bold(title_of(row, schedule)).c_str(), render(facts).c_str());
  std::fputs(picture(schedule, rank).c_str(), stdout);
}

// Memory of the text and of the objects that it is made from.
constexpr double kBytesPerExportedStep = 150;
// Per rank: the symbols that it holds and the sums that it receives.
constexpr double kBytesPerCheckedElement = 220;
constexpr double kWorthSaying = 1e9;  // bytes; so much also takes time

void say_need(double bytes, const std::string& what) {
  need_memory(bytes, what, "give fewer --ranks");
  if (bytes > kWorthSaying)
    std::fprintf(stderr, "%s takes about %s of memory, and a while\n", what.c_str(),
                 humane_bytes(bytes).c_str());
}

void export_all(const Schedule& schedule, const std::string& form, const std::string& output) {
  const Collective& c = schedule.collective();
  double steps = 0;
  for (int a = 0; a < schedule.actors(0); ++a) steps += schedule.actor(0, a).steps;
  say_need(steps * c.size * kBytesPerExportedStep,
           "--export of " + humane_count(steps * c.size, "step"));
  const std::string name =
      "ghostrank-" + std::string(name_of(c.func)) + "-" + std::to_string(c.size);
  const Patience exporting("exporting " + humane_count(steps * c.size, "step"));
  try {
    write_whole(output, form == "goal" ? to_goal(schedule) : to_xml(to_msccl(schedule, name)));
  } catch (const std::invalid_argument& error) {
    throw Error("--export " + form + ": " + error.what());
  }
}

bool stdout_is_taken(const ScheduleFlags& flags) {
  return flags.json == "-" || flags.svg == "-" || (!flags.form.empty() && flags.output == "-");
}

// The schedule that is shown, with fewer elements where these are many. A row that chooses by size
// would choose another algorithm for them, so the chosen row is played with the chosen protocol; if
// calls that are planned together play another one nevertheless, the elements stay as they are.
std::unique_ptr<Schedule> with_fewer_elements(const Algorithm& row, const Schedule& shown,
                                              const Communicator& comm) {
  const auto lower = [&](Collective& call) {
    if (call.count <= kMaxCheckedCount) return;
    // Lower the count but keep its remainder, so that ragged chunks stay ragged.
    const auto unit = static_cast<std::uint64_t>(call.size) *
                      static_cast<std::uint64_t>(std::max(1, comm.channels));
    call.count = kMaxCheckedCount / 2 + call.count % unit;
  };
  Collective c = shown.collective();
  lower(c);
  c.counts = shrink(c.counts, kMaxCheckedCount / 2);
  Communicator fewer = comm;
  if (comm.together) {
    auto lowered = *comm.together;
    std::for_each(lowered.begin(), lowered.end(), lower);
    fewer.together = std::make_shared<const std::vector<Collective>>(std::move(lowered));
  } else {
    fewer.protocol = shown.protocol();
  }
  const Algorithm& chosen = comm.together ? row : played_row(row, shown);
  std::unique_ptr<Schedule> schedule = make(chosen, c, fewer);
  if (name_of(chosen, *schedule) == name_of(row, shown)) return schedule;
  return make(row, shown.collective(), comm);
}

// Prints what was proved, to stderr if JSON has stdout. Returns the exit status.
int prove(const Algorithm& row, const Schedule& shown, const Communicator& comm, std::FILE* out) {
  const std::unique_ptr<Schedule> checked = with_fewer_elements(row, shown, comm);
  const Collective& c = checked->collective();
  double elements = 0;
  for (GroupRank r = 0; r < c.size; ++r) elements += static_cast<double>(work_elements(c, r));
  say_need(elements * kBytesPerCheckedElement, "--check of " + humane_count(c.size, "rank"));
  Patience checking("checking " + humane_count(c.size, "rank"));
  const CheckReport report = check(*checked);
  checking.end();
  if (!report.ok) {
    std::fprintf(stderr, "ghostrank: the schedule is wrong: %s\n", report.error.c_str());
    return 1;
  }
  std::fprintf(out,
               "checked %s with %s: every rank ends with every contribution once; %s "
               "messages, %s rounds\n",
               name_of(row, shown).c_str(), (element_count(c) + extent(c)).c_str(),
               humane_count(static_cast<double>(report.messages)).c_str(),
               humane_count(report.rounds).c_str());
  return 0;
}

// --datatype and --op.
void set_elements(const ScheduleFlags& flags, Collective& c) {
  if (!flags.type.empty()) {
    const BenchType type = bench_type(flags.type);
    c.element_bytes = bytes_of(type.played);
    c.numbers = type.floats || !is_integer(type.played) ? Numbers::floats : Numbers::integers;
  }
  const auto reduction = reduction_named(flags.redop);
  if (!reduction)
    throw Error("--op: there is no operation '" + flags.redop +
                "'; known are sum, prod, max, min, avg, mulsum");
  if (*reduction != Reduction::sum && !reduces(c.func))
    throw Error("--op: " + std::string(name_of(c.func)) + " reduces nothing; leave it out");
  c.reduction = *reduction;
}

}  // namespace

int verb_schedule(const Argv& argv) {
  ScheduleFlags flags;
  if (!read_flags(argv, flags)) return 0;
  const auto in_group = [&](const char* name, GroupRank rank) {
    if (rank < 0 || rank >= flags.ranks) {
      throw Error(std::string(name) + " " + std::to_string(rank) +
                  " is not in the group: ranks are 0 to " + std::to_string(flags.ranks - 1));
    }
  };
  in_group("--rank", flags.rank);
  in_group("--root", flags.root);
  if (!flags.form.empty() + !flags.json.empty() + !flags.svg.empty() > 1)
    throw Error("give one of --json, --export and --picture");
  if (!flags.svg.empty() && flags.ranks > kMostDrawnRanks)
    throw Error("--picture: at most " + std::to_string(kMostDrawnRanks) +
                " ranks can be told apart; lower --ranks");
  if (flags.form.empty() && flags.output != "-")
    throw Error("--output is where --export goes; give --export goal or msccl, or use --json");
  const Func func = parse_func(flags.collective);
  if (func == Func::send_recv && flags.ranks < 2) throw Error("send_recv needs two ranks or more");
  if (is_ragged(func) && flags.count_given)
    throw Error(std::string(name_of(func)) + " takes --counts instead of --count");
  if (flags.root_given && !has_root(func))
    throw Error("--root: " + std::string(name_of(func)) + " has no root; leave it out");
  const Counts counts = parse_counts(flags.counts, func, flags.ranks);
  Algorithms algorithms;
  for (const std::string& plugin : flags.plugins) algorithms.load_plugin(plugin, ".");
  const Algorithm& row = algorithms.resolve(flags.library, func, flags.algorithm);
  if (row.ends)
    throw Error(std::string(row.library) + "/" + std::string(row.name) +
                " has no schedule: its agents decide as they go; 'ghostrank schemes' says what it "
                "serves, 'ghostrank plan' of a job what it sends");
  Collective c{func,       flags.ranks, is_ragged(func) ? 0 : flags.count, flags.element_bytes,
               flags.root, counts};
  set_elements(flags, c);
  Communicator comm = communicator(flags, std::string(row.library));
  comm.together = together(flags, c);
  check_outputs({{"--json", flags.json},
                 {"--picture", flags.svg},
                 {"--output", flags.form.empty() ? "" : flags.output}});
  const std::unique_ptr<Schedule> schedule = make(row, c, comm);

  if (!flags.form.empty()) {
    export_all(*schedule, flags.form, flags.output);
  } else if (!flags.svg.empty()) {
    const std::string title =
        title_of(row, *schedule) + ", " + std::to_string(c.size) + " ranks, " + element_count(c);
    write_whole(flags.svg, schedule_svg(*schedule, title, comm.node_of));
  } else if (flags.json.empty()) {
    show(row, *schedule, comm, flags.rank);
  } else {
    write_whole(flags.json, json_of(messages_of(*schedule, flags.rank)));
  }
  return flags.check ? prove(row, *schedule, comm, stdout_is_taken(flags) ? stderr : stdout) : 0;
}

}  // namespace ghostrank
