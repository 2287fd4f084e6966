// Chakra traces, one file per rank (PREFIX.RANK.et), and the JSON file of their communicators:
// nodes become events.
//
// Device nodes are played as they are. Host nodes only take their time on their thread, because a
// collective that PyTorch's converter types COMM_COLL on the host also has a kernel on the device,
// which is played. Sizes are ASTRA-sim's: of an all-gather the shard, of a reduce-scatter and an
// all-to-all the rank's input.
#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/trace/json_stream.h"
#include "profiles/trace/order.h"
#include "profiles/trace/readers/chakra_file.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/torch_names.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

struct CommType {
  Func func;
  bool blocks;
};
// By CollectiveCommType.
constexpr CommType kCommTypes[] = {{Func::all_reduce, false},     {Func::reduce, false},
                                   {Func::all_gather, true},      {Func::gather, true},
                                   {Func::scatter, false},        {Func::broadcast, false},
                                   {Func::all_to_all, false},     {Func::reduce_scatter, false},
                                   {Func::reduce_scatter, false}, {Func::barrier, false}};

constexpr std::int64_t kBarrierType = 9;

// Bytes of an element of the first tensor that types of inputs name, as in ['Tensor(float)'] or
// ['GenericList[Tensor(c10::Half)]']; 0: they name none that is known.
std::uint32_t first_element_bytes(std::string_view types) {
  constexpr std::string_view kTensor = "Tensor(";
  const std::size_t at = types.find(kTensor);
  if (at == types.npos) return 0;
  const std::string_view rest = types.substr(at + kTensor.size());
  return torch_bytes(rest.substr(0, rest.find(')'))).value_or(0);
}

// PREFIX.RANK.et; also .et.gz.
std::optional<int> rank_in_extension(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  if (name.extension() == ".gz") name = name.stem();
  if (name.extension() == ".et") name = name.stem();
  const std::string digits = name.extension().string();
  const auto rank = digits.empty() ? std::nullopt : parse_integer(digits.substr(1));
  if (!rank || *rank < 0 || *rank >= kMostTraceRanks) return std::nullopt;
  return static_cast<int>(*rank);
}

class ChakraImporter {
 public:
  explicit ChakraImporter(Trace& trace) : trace_(trace) {}

  // {"0": [0, 1], "pp_1": [2, 3]}
  void read_groups(const std::string& path) {
    const std::string text = read_trace_file(path);
    const JsonTape json = parse_json(text, path);
    if (json.root().kind != JsonNode::Kind::object)
      throw Error(path +
                  ":1:1: communicators are a JSON object of lists of ranks, {\"0\": [0, 1]}");
    for (const JsonNode& one : json.children(json.root())) {
      TraceGroup group{std::string(one.key), {}};
      if (one.kind != JsonNode::Kind::array)
        throw Error(path + ":1:1: communicator " + quote(one.key) +
                    " is no list of ranks, as [0, 1] is");
      for (const JsonNode& member : json.children(one)) {
        if (!member.is_integer() || member.integer < 0 || member.integer >= kMostTraceRanks)
          throw Error(path + ":1:1: communicator " + quote(one.key) +
                      " has a member that is no rank");
        group.members.emplace_back(member.integer);
      }
      define(std::move(group), path);
    }
  }

  void read_rank(const std::string& path, int rank) {
    const std::string text = read_trace_file(path);
    rank_ = &trace_.given.emplace_back();
    rank_->rank = WorldRank(rank);
    rank_->file = path;
    rank_->tracks = {"compute"};
    index_.clear();
    waiting_.clear();
    control_.clear();
    data_.clear();
    const ChakraHead head =
        read_chakra(text, path, [&](const ChakraNode& node, std::uint64_t) { take(node); });
    if (!head.version.empty() && !head.version.starts_with("0.0.4") &&
        !head.version.starts_with("1."))
      throw Error(path + ": byte 1: schema version " + quote(head.version) +
                  " is not read; versions 0.0.4 and 1.0.0 are: convert the trace");
    resolve();
  }

  // Messages between two ranks whose ends name different communicators, or one of which names none,
  // are matched by their tag alone, as simulators match all.
  void match_names() {
    using Lane = std::tuple<std::int32_t, std::int32_t, std::uint64_t>;  // from, to, tag
    std::map<Lane, std::map<std::uint32_t, std::int64_t>> unmatched;     // sends, by communicator
    const auto each_message = [&](const auto& take) {
      for (TraceRank& rank : trace_.given)
        for (TraceEvent& event : rank.events) {
          const std::int32_t own = rank.rank.value();
          if (event.kind == TraceEvent::Kind::send)
            take(event, Lane{own, event.peer, event.tag}, 1);
          else if (event.kind == TraceEvent::Kind::recv)
            take(event, Lane{event.peer, own, event.tag}, -1);
        }
    };
    each_message([&](const TraceEvent& event, const Lane& lane, int sends) {
      unmatched[lane][event.group] += sends;
    });
    std::erase_if(unmatched, [](const auto& one) {
      return std::all_of(one.second.begin(), one.second.end(),
                         [](const auto& group) { return group.second == 0; });
    });
    if (unmatched.empty()) return;
    each_message([&](TraceEvent& event, const Lane& lane, int) {
      if (unmatched.contains(lane)) event.group = kNoIndex;
    });
  }

 private:
  [[noreturn]] void fail(const ChakraNode& node, const std::string& what) const {
    throw Error(rank_->file + ": node " + std::to_string(node.id) + ": " + what);
  }

  void define(TraceGroup group, const std::string& path) {
    std::vector<WorldRank> sorted = group.members;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      throw Error(path + ": communicator " + quote(group.name) + " has a rank twice");
    for (const TraceGroup& known : trace_.groups) {
      if (known.name != group.name) continue;
      if (known.members == group.members) return;
      // PyTorch numbers its process groups alike on every rank, so other members are a
      // contradiction.
      throw Error(path + ": communicator " + quote(group.name) +
                  " has other members than before; give the files of one job");
    }
    trace_.groups.push_back(std::move(group));
  }

  JsonTape json_of(const ChakraNode& node, std::string_view text) const {
    try {
      return parse_json(text, rank_->file);
    } catch (const Error&) {
      fail(node, "its process groups are no JSON; convert the trace again");
    }
  }

  // The text in ['...'], which is how Python writes a list of one string.
  static std::string in_python_list(std::string_view list) {
    std::string out;
    const std::size_t end = std::max(list.rfind('\''), std::size_t{2});
    for (std::size_t i = 2; i < end; ++i) {
      if (list[i] == '\\' && i + 1 < end) ++i;
      out += list[i];
    }
    return out;
  }

  // "## process_group:init ##": [{"pg_name": "1", "ranks": [0, 1], ...}, ...]
  bool take_process_groups(const ChakraNode& node) {
    if (node.name.find("process_group:init") == std::string_view::npos) return false;
    // PyTorch's execution traces have the list as text in a list, which Chakra's converter writes
    // as Python does. Other writers have it in a JSON list of one string, or alone.
    const bool python = node.input_values.starts_with("['");
    const JsonTape json = json_of(
        node, python ? std::string_view(in_python_list(node.input_values)) : node.input_values);
    JsonNode list = json.root();
    std::string inner;
    JsonTape unwrapped;
    const JsonTape* tape = &json;
    if (list.kind == JsonNode::Kind::array && list.size == 1 &&
        json.children(list).begin()->kind == JsonNode::Kind::string) {
      inner = std::string(json.children(list).begin()->text);
      unwrapped = json_of(node, inner);
      tape = &unwrapped;
      list = unwrapped.root();
    }
    for (const JsonNode& one : tape->children(list)) {
      const JsonNode* name = tape->find(one, "pg_name");
      const JsonNode* ranks = tape->find(one, "ranks");
      if (!name || !ranks) fail(node, "a process group without pg_name or ranks");
      if (ranks->kind != JsonNode::Kind::array)
        fail(node, "a process group whose ranks are no list");
      TraceGroup group{name->kind == JsonNode::Kind::string ? std::string(name->text)
                                                            : std::to_string(name->integer),
                       {}};
      for (const JsonNode& member : tape->children(*ranks)) {
        if (!member.is_integer() || member.integer < 0 || member.integer >= kMostTraceRanks)
          fail(node, "a process group with a member that is no rank");
        group.members.emplace_back(member.integer);
      }
      define(std::move(group), rank_->file);
    }
    return true;
  }

  // Some writers compute the number of a communicator in floats: "3.0" is 3.
  static std::string group_name(const ChakraNode& node) {
    if (!node.pg_name.data()) return std::to_string(node.values[4]);
    std::string name(node.pg_name);
    constexpr std::string_view kFloat = ".0";
    if (name.ends_with(kFloat) && parse_integer(name.substr(0, name.size() - kFloat.size())))
      name.resize(name.size() - kFloat.size());
    return name;
  }

  // kNoIndex: the node names none, or none that the files define.
  std::uint32_t known_group(const ChakraNode& node) const {
    if (!(node.has & ChakraNode::group)) return kNoIndex;
    const std::string name = group_name(node);
    for (std::size_t i = 0; i < trace_.groups.size(); ++i)
      if (trace_.groups[i].name == name) return static_cast<std::uint32_t>(i);
    return kNoIndex;
  }

  std::uint32_t group_of(const ChakraNode& node) const {
    const std::uint32_t known = known_group(node);
    if (known != kNoIndex || !(node.has & ChakraNode::group)) return known;
    const std::string name = group_name(node);
    if (name.empty() || name == "0") return kNoIndex;
    fail(node, "communicator " + quote(name) +
                   " is defined nowhere; give the file with the communicators, too "
                   "(comm_groups.json)");
  }

  void take(const ChakraNode& node) {
    if (trace_.given.back().events.size() >= kMostTraceEvents)
      fail(node, "more than 2^27 nodes; cut the trace into smaller ones");
    TraceEvent event;
    event.name = trace_.name(node.name);
    event.position = node.id;
    event.start = node.start_us > 0 ? micros(node, node.start_us) : -1;
    waiting_.push_back({control_.size(), data_.size()});
    control_.insert(control_.end(), node.control.begin(), node.control.end());
    data_.insert(data_.end(), node.data.begin(), node.data.end());
    fill(node, event);
    if (!index_.emplace(node.id, static_cast<std::uint32_t>(rank_->events.size())).second)
      fail(node, "a second node of this id; ids are unique");
    rank_->events.push_back(event);
  }

  Picoseconds micros(const ChakraNode& node, std::uint64_t value) const {
    if (value > 1'000'000'000'000)
      fail(node, "a time of more than 11 days; times are microseconds");
    return static_cast<Picoseconds>(value) * kPicosPerMicro;
  }

  void fill(const ChakraNode& node, TraceEvent& event) {
    ++trace_.used;
    switch (node.type) {
      case ChakraNode::invalid:
        return leave_out("nodes of no type");
      case ChakraNode::metadata:
        if (!take_process_groups(node)) leave_out("metadata nodes");
        return;
      case ChakraNode::comp:
      case ChakraNode::load:
      case ChakraNode::store:
        return compute(node, event);
      default:
        break;
    }
    if (node.host) {
      leave_out(node.type == ChakraNode::coll
                    ? "collectives of the host, of which only the time is used"
                    : "sends and receives of the host, of which only the time is used");
      event.counted = false;
      return compute(node, event);
    }
    const bool barrier = node.type == ChakraNode::coll && (node.has & ChakraNode::comm_type) &&
                         node.values[0] == kBarrierType;
    if (!(node.has & ChakraNode::comm_size) && !barrier)
      fail(node, "communication without comm_size");
    event.stated =
        node.has & ChakraNode::comm_size ? static_cast<std::uint64_t>(node.values[1]) : 0;
    event.tag = node.tag;
    event.duration = micros(node, node.duration_us);
    if (event.stated > kMostTraceBytes) fail(node, "comm_size is more than 2^44 bytes");
    const std::uint32_t width = first_element_bytes(node.input_types);
    if (width > 0 && event.stated % width == 0) event.dtype = played_as(width);
    if (node.type != ChakraNode::coll) return transfer(node, event);
    collective(node, event);
  }

  void leave_out(const std::string& why) {
    --trace_.used;
    ++trace_.left_out[why];
  }

  void compute(const ChakraNode& node, TraceEvent& event) {
    event.kind = TraceEvent::Kind::compute;
    event.duration = micros(node, node.duration_us);
    if (event.duration == 0 && !node.host) {
      if (node.has & ChakraNode::num_ops) event.flops = static_cast<double>(node.values[5]);
      if (node.has & ChakraNode::tensor_size) event.stated = node.values[6];
    }
    const std::string number = node.track >= 0 ? " " + std::to_string(node.track) : "";
    const bool memory = node.type != ChakraNode::comp;
    if (node.host)
      event.track = track_named(*rank_, "host" + number);
    else if (memory)
      event.track = track_named(*rank_, "memory");
    else if (node.track >= 0)
      event.track = track_named(*rank_, "stream" + number);
  }

  void transfer(const ChakraNode& node, TraceEvent& event) {
    const bool sends = node.type == ChakraNode::send;
    event.kind = sends ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
    const auto src =
        static_cast<std::uint32_t>(node.has & ChakraNode::comm_src ? node.values[2] : -1);
    const auto dst =
        static_cast<std::uint32_t>(node.has & ChakraNode::comm_dst ? node.values[3] : -1);
    const std::uint32_t other = sends ? dst : src, own = sends ? src : dst;
    if (!(node.has & (sends ? ChakraNode::comm_dst : ChakraNode::comm_src)))
      fail(node, sends ? "a send without comm_dst" : "a receive without comm_src");
    if (other >= static_cast<std::uint32_t>(kMostTraceRanks)) fail(node, "the peer is no rank");
    if (own != static_cast<std::uint32_t>(-1) && own != rank_->rank.index())
      fail(node, "comm_src and comm_dst do not name rank " + to_string(rank_->rank) +
                     ", whose file this is; name files PREFIX.RANK.et");
    if (other == rank_->rank.index()) fail(node, "a message of a rank to itself");
    event.peer = other;
    event.group = known_group(node);
  }

  void collective(const ChakraNode& node, TraceEvent& event) {
    const std::int64_t type = node.has & ChakraNode::comm_type ? node.values[0] : -1;
    if (type < 0 || type >= static_cast<std::int64_t>(std::size(kCommTypes)))
      fail(node, "comm_type " + std::to_string(type) + " is no collective of Chakra");
    if ((node.has & ChakraNode::part_of_dims) && known_group(node) == kNoIndex)
      fail(node,
           "involved_dim leaves out dimensions of a topology that the trace does not have; "
           "write the communicators with pg_name");
    event.kind = TraceEvent::Kind::collective;
    event.func = kCommTypes[type].func;
    event.blocks = kCommTypes[type].blocks;
    // Only the root has inputs.
    if (event.func == Func::scatter) event.dtype = DataType::uint8;
    event.group = group_of(node);
    event.peer = node.has & ChakraNode::root ? static_cast<std::int32_t>(node.values[7]) : 0;
  }

  // Turns ids of dependencies into indices. PyTorch's converter writes the tree of calls as control
  // dependencies, which may form cycles with the data dependencies; then only the data dependencies
  // count.
  void resolve() {
    waiting_.push_back({control_.size(), data_.size()});
    std::uint64_t missing = tie(true);
    if (!control_.empty() && has_cycle(*rank_)) {
      missing = tie(false);
      if (has_cycle(*rank_))
        tie(true);  // order_of() names the cycle with all of them
      else
        trace_.left_out["control dependencies that form cycles"] += control_.size();
    }
    // The converter removed those nodes.
    if (missing > 0)
      trace_.left_out["dependencies on nodes that the file does not have"] += missing;
  }

  // Returns how many dependencies name no node.
  std::uint64_t tie(bool control) {
    std::uint64_t missing = 0;
    rank_->deps.clear();
    const auto add = [&](const std::vector<std::uint64_t>& ids, std::size_t from, std::size_t to) {
      for (; from < to; ++from) {
        const auto at = index_.find(ids[from]);
        if (at == index_.end())
          ++missing;
        else
          rank_->deps.push_back(at->second);
      }
    };
    for (std::size_t i = 0; i < rank_->events.size(); ++i) {
      TraceEvent& event = rank_->events[i];
      event.first_dep = static_cast<std::uint32_t>(rank_->deps.size());
      if (control) add(control_, waiting_[i].control, waiting_[i + 1].control);
      add(data_, waiting_[i].data, waiting_[i + 1].data);
      event.deps = static_cast<std::uint32_t>(rank_->deps.size()) - event.first_dep;
    }
    return missing;
  }

  struct Waiting {  // where the dependencies of an event begin
    std::size_t control = 0, data = 0;
  };

  Trace& trace_;
  TraceRank* rank_ = nullptr;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;
  std::vector<Waiting> waiting_;               // by event, and one for the end
  std::vector<std::uint64_t> control_, data_;  // ids
};

}  // namespace

Trace import_chakra(const std::vector<std::string>& files, int) {
  Trace trace;
  trace.format = "chakra";
  trace.unit = "microseconds; every rank has a clock of its own";
  trace.position_unit = "node";
  ChakraImporter importer(trace);
  std::vector<std::pair<int, std::string>> ranks;
  for (const std::string& file : files) {
    if (trace_head(file, 1) == "{") {
      importer.read_groups(file);
      continue;
    }
    const auto rank = rank_in_extension(file);
    if (!rank && files.size() > 1)
      throw Error(file + ": which rank's trace is this? name the files PREFIX.RANK.et");
    ranks.emplace_back(rank.value_or(0), file);
  }
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0 && ranks[i].first == ranks[i - 1].first)
      throw Error(ranks[i].second + ": a second trace of rank " + std::to_string(ranks[i].first) +
                  "; give the files of one job");
    importer.read_rank(ranks[i].second, ranks[i].first);
  }
  if (ranks.empty()) throw Error(files.front() + ": these are communicators; give the traces, too");
  importer.match_names();
  return trace;
}

}  // namespace ghostrank
