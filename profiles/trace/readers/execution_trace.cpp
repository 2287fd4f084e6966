// PyTorch's execution traces (JSON, schemas 1.0.1 to 1.1.x-chakra), one file per rank: the
// collectives of their record_param_comms nodes.
//
//   "values": [[[3235, 3218, 0, 2049000, 4, "cuda:1"]], 35, ["0", "default_pg"], 1, "allreduce",
//              [], [], 0, 1, 2]
//             tensors, number, process group, rank, call, splits in and out, first rank, stride,
//             size
//
// Positions count from the first text, the name of the call, because without tensors everything
// moves one to the left. If a call has a root or a peer, `rank` is the root's or the peer's
// position in the process group. A call overlaps until a later `wait` names its group and number;
// other calls block. The trace has no device times, so there are no delays between calls; all other
// nodes are left out.
//
// In PyTorch before 2.3 a process group is an address, which differs from process to process. Its
// definition has the name, or none up to 2.1: then groups are numbered in the order of definitions,
// then of first calls, and the only one has no name. The group of a wait is 0 there. First rank and
// stride are missing, in older versions the size, too: a group that says neither its size nor its
// members is of all ranks.
#include "profiles/trace/readers/execution_trace.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/trace/json_stream.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/torch_names.h"

namespace ghostrank {
namespace {

std::optional<int> rank_in_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view before : {"rank_", "rank-", "rank"}) {
    const auto at = name.rfind(before);
    if (at == std::string::npos) continue;
    const std::size_t from = at + before.size();
    const std::size_t end = std::min(name.find_first_not_of("0123456789", from), name.size());
    const auto rank = parse_integer(name.substr(from, end - from));
    if (rank && *rank >= 0 && *rank < kMostTraceRanks) return static_cast<int>(*rank);
  }
  return std::nullopt;
}

struct Tensors {
  std::uint64_t bytes = 0;
  std::uint32_t width = 0;
};

class ExecutionTraceImporter {
 public:
  explicit ExecutionTraceImporter(Trace& trace) : trace_(trace) {}

  // The calls of the last file, by the number that Kineto gives them, too, and the numbers of all
  // that its record_param_comms recorded.
  std::map<std::int64_t, std::uint32_t> take_records() { return std::move(records_); }
  std::vector<std::int64_t> take_numbers() {
    std::sort(numbers_.begin(), numbers_.end());
    return std::move(numbers_);
  }

  // `rank`: of the file, if its name says so; `otherwise`: if the calls do not say it either.
  void read(const std::string& path, std::optional<int> rank, int otherwise = 0) {
    const JsonTape json = parse_json(read_trace_file(path), path);
    json_ = &json;
    const JsonNode* nodes = json.find(json.root(), "nodes");
    if (!nodes || nodes->kind != JsonNode::Kind::array)
      throw Error(path + ":1:1: an execution trace has a list of nodes");
    rank_ = &trace_.given.emplace_back();
    rank_->file = path;
    rank_->tracks = {"compute"};
    own_.reset();
    if (rank) own_.emplace(*rank);
    name_groups(*nodes);
    find_waits(*nodes);
    members_of_.clear();
    requests_.clear();
    after_.clear();
    records_.clear();
    numbers_.clear();
    for (const JsonNode& node : json.children(*nodes)) take(node);
    rank_->rank = own_.value_or(WorldRank(otherwise));
    for (TraceEvent& event : rank_->events)
      if (event.kind == TraceEvent::Kind::send || event.kind == TraceEvent::Kind::recv)
        if (event.peer == rank_->rank.value())
          throw Error(position_text(trace_, *rank_, event) + ": a message of a rank to itself");
  }

 private:
  static constexpr std::string_view kGroupsNode = "process_group:init";

  // Process group, number and whether it is a message's: messages and collectives count apart.
  using Request = std::tuple<std::string, std::int64_t, bool>;

  // The values of a record_param_comms node, by position.
  struct Values {
    std::vector<const JsonNode*> all;
    std::size_t call = 0;  // position of its name
    const JsonNode* at(std::ptrdiff_t offset) const {
      const auto position = static_cast<std::ptrdiff_t>(call) + offset;
      return position >= 0 && position < std::ssize(all) ? all[position] : nullptr;
    }
    std::string_view name() const { return all[call]->text; }
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(rank_->file + ": node " + std::to_string(id_) + ": " + what);
  }

  std::string_view name_of(const JsonNode& node) const {
    const JsonNode* name = json_->find(node, "name");
    return name ? name->text : std::string_view();
  }

  bool is_call(const JsonNode& node) const {
    return name_of(node).starts_with("record_param_comms");
  }

  // "inputs" is {"values": [...]}; in schema 1.0.1 it is the list itself.
  const JsonNode* values_in(const JsonNode& node, std::string_view key) const {
    const JsonNode* part = json_->find(node, key);
    if (part && part->kind == JsonNode::Kind::object) part = json_->find(*part, "values");
    return part && part->kind == JsonNode::Kind::array ? part : nullptr;
  }

  Values values_of(const JsonNode& node) const {
    Values out;
    const JsonNode* list = values_in(node, "inputs");
    if (!list) fail("record_param_comms without inputs");
    for (const JsonNode& value : json_->children(*list)) out.all.push_back(&value);
    while (out.call < out.all.size() && out.all[out.call]->kind != JsonNode::Kind::string)
      ++out.call;
    if (out.call == out.all.size()) fail("record_param_comms without the name of a call");
    return out;
  }

  // As the trace writes it.
  std::string group_in(const Values& values) const {
    const JsonNode* group = values.at(-2);
    if (group && group->kind == JsonNode::Kind::array && group->size > 0)
      group = &*json_->children(*group).begin();
    if (group && group->kind == JsonNode::Kind::string) return std::string(group->text);
    return group && group->is_integer() ? std::to_string(group->integer) : "";
  }
  std::string group_name(const Values& values) const {
    const std::string group = group_in(values);
    if (const auto named = name_of_address_.find(group); named != name_of_address_.end())
      return named->second;
    const bool of_wait = group == "0" && values.name() == "wait" && names_.size() == 1;
    return of_wait ? *names_.begin() : group;
  }

  static bool is_address(const std::string& group) {
    constexpr std::int64_t kLeastAddress = std::int64_t{1} << 32;
    return parse_integer(group).value_or(0) >= kLeastAddress;
  }

  // Gives names to the groups that are addresses.
  void name_groups(const JsonNode& nodes) {
    name_of_address_.clear();
    std::size_t unnamed = 0;
    for (const JsonNode& node : json_->children(nodes))
      if (name_of(node).find(kGroupsNode) != std::string_view::npos)
        each_group(node, [&](const Defined& group) {
          const std::string name = group.name.empty() ? std::to_string(unnamed++) : group.name;
          for (const std::string& address : group.addresses)
            name_of_address_.try_emplace(address, name);
        });
    for (const JsonNode& node : json_->children(nodes)) {
      if (!is_call(node)) continue;
      take_id(node);
      const std::string group = group_in(values_of(node));
      if (is_address(group) && name_of_address_.try_emplace(group, std::to_string(unnamed)).second)
        ++unnamed;
    }
    names_.clear();
    for (const auto& [address, name] : name_of_address_) names_.insert(name);
    if (unnamed != 1 || names_.size() != 1) return;
    for (auto& [address, name] : name_of_address_) name.clear();
    names_ = {""};
  }

  // In some versions the number is [number, is p2p].
  std::optional<Request> request(const Values& values) const {
    const JsonNode* number = values.at(-3);
    bool p2p = false;
    if (number && number->kind == JsonNode::Kind::array && number->size > 0) {
      for (const JsonNode& part : json_->children(*number))
        p2p = part.kind == JsonNode::Kind::boolean && part.integer != 0;
      number = &*json_->children(*number).begin();
    }
    if (!number || !number->is_integer()) return std::nullopt;
    return Request{group_name(values), number->integer, p2p};
  }

  void find_waits(const JsonNode& nodes) {
    waited_.clear();
    for (const JsonNode& node : json_->children(nodes)) {
      if (!is_call(node)) continue;
      take_id(node);
      const Values values = values_of(node);
      if (values.name() != "wait") continue;
      if (const auto of = request(values)) waited_.insert(*of);
    }
  }

  void take_id(const JsonNode& node) {
    const JsonNode* id = json_->find(node, "id");
    if (!id || !id->is_integer() || id->integer < 0) {
      id_ = 0;
      fail("a node without an id");
    }
    id_ = id->integer;
  }

  void take(const JsonNode& node) {
    take_id(node);
    if (name_of(node).find(kGroupsNode) != std::string_view::npos) {
      each_group(node, [&](const Defined& group) {
        members_of_[group.name] = group.members;
        for (const std::string& address : group.addresses) members_of_[address] = group.members;
      });
      ++trace_.used;
      return;
    }
    if (!is_call(node)) {
      ++trace_.left_out["nodes that are no collectives: the trace has no times of devices"];
      return;
    }
    communicate(node);
  }

  struct Defined {
    std::string name;                    // empty: it has none
    std::vector<std::string> addresses;  // by which calls may name it
    std::vector<WorldRank> members;      // empty: not known
  };

  // Calls `take` for each group that the node defines, as
  //
  //   [{"pg_name": "1", "ranks": [0, 2], "group_size": 2, ...}, ...]
  //   [{"pg_name": "1", "backend_id": 82149104, "ranks": [], "group_size": 4, ...}, ...]  all ranks
  //   [{'pg_id': 94594108284448, 'backend_id': 94594108284000, 'ranks': {0: 0, 2: 1}, ...}, ...]
  template <typename Take>
  void each_group(const JsonNode& node, Take take) {
    take_id(node);
    const JsonNode* list = values_in(node, "inputs");
    if (!list) return;
    for (const JsonNode& text : json_->children(*list)) {
      if (text.kind != JsonNode::Kind::string) continue;
      const bool python = text.text.starts_with("[{'");
      const JsonTape groups =
          parse_json(python ? json_of_python(text.text) : std::string(text.text), rank_->file);
      for (const JsonNode& one : groups.children(groups.root())) take(defined(groups, one));
    }
  }

  Defined defined(const JsonTape& json, const JsonNode& group) const {
    Defined out;
    const auto text = [](const JsonNode& value) {
      return value.is_integer() ? std::to_string(value.integer) : std::string(value.text);
    };
    if (const JsonNode* name = json.find(group, "pg_name")) out.name = text(*name);
    for (const char* key : {"pg_id", "backend_id"})
      if (const JsonNode* address = json.find(group, key)) out.addresses.push_back(text(*address));
    const JsonNode* ranks = json.find(group, "ranks");
    if (!ranks) return out;
    for (const JsonNode& rank : json.children(*ranks)) {
      const bool key = ranks->kind == JsonNode::Kind::object;
      const std::int64_t number =
          key ? parse_integer(std::string(rank.key)).value_or(-1) : integer(&rank, -1);
      if (number < 0 || number >= kMostTraceRanks)
        fail("a process group with a member that is no rank");
      out.members.emplace_back(number);
    }
    return out;
  }

  // What Python prints of lists and dictionaries with texts and numbers: texts have quotes of JSON,
  // and numbers that are keys get some.
  static std::string json_of_python(std::string_view text) {
    std::string out;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::size_t end = std::min(text.find_first_not_of("0123456789", i), text.size());
      if (text[i] == '\'') {
        quoted = !quoted;
        out += '"';
      } else if (!quoted && end > i) {
        const std::string number(text.substr(i, end - i));
        out += end < text.size() && text[end] == ':' ? '"' + number + '"' : number;
        i = end - 1;
      } else {
        out += text[i];
      }
    }
    return out;
  }

  void communicate(const JsonNode& node) {
    if (const auto record = record_of(node)) numbers_.push_back(*record);
    const Values values = values_of(node);
    const auto known = torch_call(values.name());
    if (!known) fail("call " + quote(values.name()) + " is none of PyTorch's");
    ++trace_.used;
    if (known->call == TorchCall::init || known->call == TorchCall::batch) return;
    const auto of = request(values);
    if (known->call == TorchCall::wait) return wait(of);
    TraceEvent event;
    event.name = trace_.name(values.name());
    event.position = id_;
    if (known->call == TorchCall::collective)
      collective(node, values, known->func, event);
    else
      transfer(node, values, known->call == TorchCall::send, event);
    std::vector<std::uint32_t> added;
    for (const TraceEvent& one : calls_of(values, event))
      added.push_back(add_event(*rank_, one, after_));
    if (const auto record = record_of(node)) records_.emplace(*record, added.front());
    if (of && waited_.contains(*of)) {
      auto& request = requests_[*of];
      request.insert(request.end(), added.begin(), added.end());
    } else {
      after_ = std::move(added);
    }
  }

  // A coalesced call becomes one NCCL call per tensor, all in one ncclGroup.
  std::vector<TraceEvent> calls_of(const Values& values, const TraceEvent& event) const {
    if (!values.name().ends_with("_coalesced") || values.call == 0) return {event};
    std::vector<TraceEvent> out;
    for (const JsonNode& tensor : json_->children(*values.all.front())) {
      Tensors one;
      add_tensors(tensor, one);
      TraceEvent& call = out.emplace_back(event);
      call.stated = one.bytes;
      call.dtype = played_as(one.width);
      call.with_next = true;
    }
    if (out.empty()) return {event};
    out.back().with_next = false;
    return out;
  }

  // Returns rf_id. Schema 1.0.1 has it in the node, later schemas in its attributes.
  std::optional<std::int64_t> record_of(const JsonNode& node) const {
    const JsonNode* value = json_->find(node, "rf_id");
    if (const JsonNode* attributes = json_->find(node, "attrs"))
      for (const JsonNode& one : json_->children(*attributes)) {
        const JsonNode* name = json_->find(one, "name");
        if (name && name->text == "rf_id") value = json_->find(one, "value");
      }
    return value && value->is_integer() ? std::optional(value->integer) : std::nullopt;
  }

  void wait(const std::optional<Request>& of) {
    const auto at = of ? requests_.find(*of) : requests_.end();
    if (at == requests_.end()) {
      --trace_.used;
      ++trace_.left_out["waits for calls that the trace does not have"];
      return;
    }
    TraceEvent join;
    join.name = trace_.name("wait");
    join.position = id_;
    std::vector<std::uint32_t> deps = at->second;
    deps.insert(deps.end(), after_.begin(), after_.end());
    requests_.erase(at);
    after_ = {add_event(*rank_, join, deps)};
  }

  // Adds tensors [id, storage, offset, elements, bytes of one, device], or lists of them.
  void add_tensors(const JsonNode& value, Tensors& out) const {
    if (value.kind != JsonNode::Kind::array) return;
    std::vector<const JsonNode*> parts;
    for (const JsonNode& part : json_->children(value)) parts.push_back(&part);
    const bool tensor =
        parts.size() == 6 && parts[0]->is_integer() && parts[5]->kind == JsonNode::Kind::string;
    if (!tensor) {
      for (const JsonNode* part : parts) add_tensors(*part, out);
      return;
    }
    const std::int64_t elements = parts[3]->integer, width = parts[4]->integer;
    if (elements < 0 || width < 0 || width > 16 || elements > (std::int64_t{1} << 40))
      fail("a tensor of " + std::to_string(elements) + " elements of " + std::to_string(width) +
           " bytes");
    out.bytes += static_cast<std::uint64_t>(elements) * width;
    out.width = static_cast<std::uint32_t>(width);
    if (out.bytes > kMostTraceBytes) fail("tensors of more than 2^44 bytes");
  }

  Tensors inputs(const Values& values) const {
    Tensors out;
    if (values.call == 0) return out;
    const JsonNode& list = *values.all.front();
    add_tensors(list, out);
    // Without tensors the name has the fourth place.
    if (values.call > 3 && list.kind == JsonNode::Kind::array && list.size > 0 && out.width == 0)
      fail(
          "tensors that are not [id, storage, offset, elements, bytes of one, device], so their "
          "sizes are not known");
    return out;
  }
  Tensors outputs(const JsonNode& node) const {
    Tensors out;
    if (const JsonNode* list = values_in(node, "outputs")) add_tensors(*list, out);
    return out;
  }

  std::int64_t integer(const JsonNode* value, std::int64_t otherwise) const {
    return value && value->is_integer() ? value->integer : otherwise;
  }

  // Members come from the trace's definition of the process group, else from first rank, stride and
  // size.
  std::uint32_t group_of(const Values& values) {
    TraceGroup group{group_name(values), {}};
    const auto defined = members_of_.find(group_in(values));
    // Behind the name stand splits, and then the size alone, or it comes third.
    const bool alone = values.at(3) && !values.at(4);
    const std::int64_t size = integer(values.at(alone ? 3 : 5), 0);
    if (defined != members_of_.end() && !defined->second.empty()) {
      group.members = defined->second;
    } else if (size > 0) {
      const std::int64_t first = alone ? 0 : integer(values.at(3), 0),
                         stride = integer(values.at(4), 1);
      constexpr std::int64_t kLast = kMostTraceRanks - 1;
      const bool fits = size <= kMostTraceRanks && first >= 0 && first <= kLast && stride >= 0;
      // A division, because the product may overflow.
      if (!fits || (size > 1 && (stride == 0 || stride > (kLast - first) / (size - 1))))
        fail("a process group of " + std::to_string(size) + " ranks from " + std::to_string(first) +
             ", stride " + std::to_string(stride));
      for (std::int64_t i = 0; i < size; ++i) group.members.emplace_back(first + i * stride);
    }
    return group_like(group, trace_);
  }

  void collective(const JsonNode& node, const Values& values, Func func, TraceEvent& event) {
    event.kind = TraceEvent::Kind::collective;
    event.func = func;
    event.group = group_of(values);
    const auto& members = trace_.groups[event.group].members;
    const auto rank = integer(values.at(-1), 0);
    if (has_root(func))
      event.peer = static_cast<std::int32_t>(std::clamp<std::int64_t>(rank, -1, kMostTraceRanks));
    else if (!own_ && rank >= 0 && rank < (members.empty() ? kMostTraceRanks : std::ssize(members)))
      own_ = members.empty() ? WorldRank(rank) : members[rank];
    if (func == Func::barrier) return;
    const Tensors in = inputs(values), out = outputs(node);
    event.dtype = played_as(in.width);
    event.stated = func == Func::scatter ? out.bytes : in.bytes;
    event.blocks = func == Func::all_gather || func == Func::gather || func == Func::scatter;
    const JsonNode* splits = values.at(1);
    if (func != Func::all_to_all && func != Func::all_to_all_v) return;
    event.func = Func::all_to_all;
    if (!splits || splits->kind != JsonNode::Kind::array || splits->size == 0) return;
    std::vector<std::uint64_t> rows;  // splits count rows of the tensor
    std::uint64_t sum = 0;
    for (const JsonNode& row : json_->children(*splits)) {
      if (!row.is_integer() || row.integer < 0 || row.integer > (std::int64_t{1} << 40))
        fail("splits that are no numbers");
      rows.push_back(static_cast<std::uint64_t>(row.integer));
      sum += rows.back();
    }
    const std::uint64_t elements = in.bytes / bytes_of(event.dtype);
    if (sum == 0 ? elements != 0 : elements % sum != 0)
      fail("splits of " + std::to_string(sum) + " rows do not divide " + std::to_string(elements) +
           " elements");
    for (std::uint64_t& row : rows) row *= sum == 0 ? 0 : elements / sum;
    event.func = Func::all_to_all_v;
    event.stated = out.bytes;
    event.splits = static_cast<std::uint32_t>(trace_.splits.size());
    trace_.splits.push_back(std::move(rows));
  }

  void transfer(const JsonNode& node, const Values& values, bool sends, TraceEvent& event) {
    event.kind = sends ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
    Tensors moved = inputs(values);
    if (moved.bytes == 0) moved = outputs(node);
    event.stated = moved.bytes;
    event.dtype = played_as(moved.width);
    event.group = group_of(values);
    const auto& members = trace_.groups[event.group].members;
    const std::int64_t peer = integer(values.at(-1), -1);
    if (peer < 0 || (!members.empty() && peer >= std::ssize(members)) || peer >= kMostTraceRanks)
      fail("there is no peer " + std::to_string(peer) + " in the process group");
    event.peer = members.empty() ? static_cast<std::int32_t>(peer) : members[peer].value();
  }

  Trace& trace_;
  const JsonTape* json_ = nullptr;
  TraceRank* rank_ = nullptr;
  std::optional<WorldRank> own_;  // rank, once it is known
  std::uint64_t id_ = 0;
  std::map<std::string, std::string> name_of_address_;        // of process groups
  std::set<std::string> names_;                               // of those
  std::map<std::string, std::vector<WorldRank>> members_of_;  // as the trace defines them
  std::set<Request> waited_;
  std::map<Request, std::vector<std::uint32_t>> requests_;
  std::map<std::int64_t, std::uint32_t> records_;
  std::vector<std::int64_t> numbers_;
  std::vector<std::uint32_t> after_;
};

ExecutionCalls read_execution_calls(const std::string& path) {
  ExecutionCalls out;
  out.trace.position_unit = "node";
  ExecutionTraceImporter importer(out.trace);
  importer.read(path, rank_in_name(path));
  out.by_record = importer.take_records();
  out.records = importer.take_numbers();
  return out;
}

}  // namespace

std::map<WorldRank, ExecutionCalls> take_execution_calls(std::vector<std::string>& files) {
  std::map<WorldRank, ExecutionCalls> out;
  std::erase_if(files, [&](const std::string& file) {
    if (!is_execution_trace(trace_head(file, kTraceHead))) return false;
    ExecutionCalls calls = read_execution_calls(file);
    const WorldRank rank = calls.trace.given.front().rank;
    if (!out.emplace(rank, std::move(calls)).second)
      throw Error(file + ": a second execution trace of rank " + to_string(rank));
    return true;
  });
  return out;
}

Trace import_execution_trace(const std::vector<std::string>& files, int) {
  Trace trace;
  trace.format = "pytorch-et";
  trace.unit = "none: execution traces have no times of devices";
  trace.position_unit = "node";
  ExecutionTraceImporter importer(trace);
  const std::vector<std::optional<int>> named = ranks_in_names(files);
  for (std::size_t f = 0; f < files.size(); ++f)
    importer.read(files[f], rank_in_name(files[f]), files.size() > 1 ? named[f].value_or(0) : 0);
  std::ranges::sort(trace.given, {}, &TraceRank::rank);
  return trace;
}

}  // namespace ghostrank
