// PARAM's basic comms traces: a JSON list per rank (rank0.json or 0.json) of calls and
// computations, in their order.
//
//   [{"comms": "init", "pg_id": 0, "global_ranks": [0, 1], "world_size": 2, "req": 0},
//    {"compute": "gemm", "count": 4, "mm_dim": 2048, "dtype": "float"},
//    {"comms": "all_reduce", "in_msg_size": 2049000, "out_msg_size": 2049000, "dtype": "float",
//     "req": 35, "pg_id": 0, "world_size": 2, "startTime_ns": 1000},
//    {"comms": "wait", "req": 35, "pg_id": 0}]
//
// Elements run one after the other. A call that a later `wait` names does not block until then; all
// others block. Sends and receives with use_batch start together and end at batch_isend_irecv. On a
// device a GEMM costs its FLOPs, an embedding look-up its bytes. Sizes are elements of one rank's
// buffers.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/trace/json_stream.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/torch_names.h"

namespace ghostrank {

namespace {

// A file's name before its extensions, as far as it is followed by digits, and these.
std::pair<std::string, std::string> parts_of_name(const std::string& path) {
  std::string stem = std::filesystem::path(path).filename().string();
  stem.resize(std::min(stem.find('.'), stem.size()));
  const auto digits = stem.find_last_not_of("0123456789") + 1;
  return {stem.substr(0, digits), stem.substr(digits)};
}

bool precedes_a_rank(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name.empty() || !std::isalnum(static_cast<unsigned char>(name.back())) ||
         name.ends_with("rank");
}

}  // namespace

std::optional<int> rank_at_end(const std::string& path) {
  const auto rank = parse_integer(parts_of_name(path).second);
  if (!rank || *rank >= kMostTraceRanks) return std::nullopt;
  return static_cast<int>(*rank);
}

std::vector<std::optional<int>> ranks_in_names(const std::vector<std::string>& files) {
  std::map<std::string, int> alike;
  for (const std::string& file : files) ++alike[parts_of_name(file).first];
  std::vector<std::optional<int>> out;
  for (const std::string& file : files) {
    const std::string before = parts_of_name(file).first;
    const bool counts = alike[before] > 1 || precedes_a_rank(before);
    out.push_back(counts ? rank_at_end(file) : std::nullopt);
  }
  return out;
}

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 43;

class ParamImporter {
 public:
  explicit ParamImporter(Trace& trace) : trace_(trace) {}

  void read_rank(const std::string& path, int rank) {
    const JsonTape json = parse_json(read_trace_file(path), path);
    json_ = &json;
    rank_ = &trace_.given.emplace_back();
    rank_->rank = WorldRank(rank);
    rank_->file = path;
    rank_->tracks = {"compute"};
    requests_.clear();
    after_.clear();
    batch_.clear();
    number_ = 0;
    if (json.root().kind != JsonNode::Kind::array)
      throw Error(path + ":1:1: a comms trace is a JSON list of calls; found something else");
    find_waits(json.root());
    for (const JsonNode& element : json.children(json.root())) {
      take(element);
      ++number_;
    }
  }

 private:
  // Process group, req and whether it is a message's: messages and collectives count apart.
  using Request = std::tuple<std::string, std::int64_t, bool>;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(rank_->file + ": element " + std::to_string(number_) + ": " + what);
  }

  const JsonNode* find(const JsonNode& element, std::string_view key) const {
    const JsonNode* value = json_->find(element, key);
    return value && value->kind != JsonNode::Kind::null ? value : nullptr;
  }

  std::int64_t integer(const JsonNode& element, std::string_view key, std::int64_t most,
                       std::optional<std::int64_t> otherwise = std::nullopt) const {
    const JsonNode* value = find(element, key);
    if (!value && otherwise) return *otherwise;
    if (!value) fail("no " + std::string(key));
    if (!value->is_integer() || value->integer < 0 || value->integer > most)
      fail(std::string(key) + " is no integer from 0 to " + std::to_string(most));
    return value->integer;
  }

  std::string_view text(const JsonNode& element, std::string_view key) const {
    const JsonNode* value = find(element, key);
    if (!value || value->kind != JsonNode::Kind::string) fail("no " + std::string(key));
    return value->text;
  }

  std::string group_name(const JsonNode& element) const {
    const JsonNode* id = find(element, "pg_id");
    if (!id) return "";
    if (id->kind == JsonNode::Kind::string) return std::string(id->text);
    if (!id->is_integer()) fail("pg_id is neither a number nor a text");
    return std::to_string(id->integer);
  }

  // `req` may be a number or [number, is p2p].
  std::optional<Request> request(const JsonNode& element) const {
    const JsonNode* req = find(element, "req");
    if (!req) return std::nullopt;
    bool p2p = false;
    if (req->kind == JsonNode::Kind::array && req->size > 0) {
      for (const JsonNode& part : json_->children(*req))
        p2p = part.kind == JsonNode::Kind::boolean && part.integer != 0;
      req = &*json_->children(*req).begin();
    }
    if (!req->is_integer()) fail("req is no number");
    return Request{group_name(element), req->integer, p2p};
  }

  void find_waits(const JsonNode& list) {
    waited_.clear();
    for (const JsonNode& element : json_->children(list)) {
      const JsonNode* comms = json_->find(element, "comms");
      if (comms && torch_call(comms->text) && torch_call(comms->text)->call == TorchCall::wait)
        if (const auto of = request(element)) waited_.insert(*of);
    }
  }

  void take(const JsonNode& element) {
    if (element.kind != JsonNode::Kind::object) fail("no JSON object");
    if (find(element, "comms")) {
      communicate(element);
    } else if (find(element, "compute")) {
      compute(element);
    } else {
      fail("neither comms nor compute");
    }
    ++trace_.used;
  }

  std::uint32_t element_bytes(const JsonNode& element) const {
    const auto bytes = torch_bytes(text(element, "dtype"));
    if (!bytes) fail("dtype " + quote(text(element, "dtype")) + " is no type of elements");
    return *bytes;
  }

  TraceEvent event_of(std::string_view name) {
    TraceEvent event;
    event.name = trace_.name(name);
    event.position = number_;
    return event;
  }

  std::uint64_t moved(double bytes, const char* what) const {
    if (bytes > static_cast<double>(kMostTraceBytes))
      fail("a " + std::string(what) + " of more than 2^44 bytes");
    return static_cast<std::uint64_t>(bytes);
  }

  void compute(const JsonNode& element) {
    const std::string_view kind = text(element, "compute");
    TraceEvent event = event_of(kind);
    event.kind = TraceEvent::Kind::compute;
    const auto count = static_cast<double>(integer(element, "count", 1 << 20, 1));
    constexpr std::int64_t kMost = 1 << 24;
    if (kind == "gemm") {
      const bool square = find(element, "mm_dim") != nullptr;
      const auto dim = [&](const char* key) {
        return static_cast<double>(integer(element, square ? "mm_dim" : key, kMost));
      };
      const double m = dim("mm0_dim0"), k = dim("mm0_dim1"), n = dim("mm1_dim1");
      event.flops = 2 * m * n * k * count;
      event.stated = moved((m * k + k * n + m * n) * element_bytes(element) * count, "gemm");
    } else if (kind == "emb_lookup") {
      const auto value = [&](const char* key) {
        return static_cast<double>(integer(element, key, kMost, 1));
      };
      event.stated = moved(value("batch_size") * value("num_emb_tables") * value("bag_size") *
                               value("emb_dim") * 4 * count,
                           "look-up");
    } else {
      fail("compute " + quote(kind) + " is neither gemm nor emb_lookup");
    }
    after_ = {add_event(*rank_, event, after_)};
  }

  void define_group(const JsonNode& element) {
    TraceGroup group{group_name(element), {}};
    if (const JsonNode* ranks = find(element, "global_ranks")) {
      if (ranks->kind != JsonNode::Kind::array) fail("global_ranks is no list of ranks");
      for (const JsonNode& member : json_->children(*ranks)) {
        if (!member.is_integer() || member.integer < 0 || member.integer >= kMostTraceRanks)
          fail("global_ranks has a member that is no rank");
        group.members.emplace_back(member.integer);
      }
    }
    const std::int64_t size = integer(element, "world_size", kMostTraceRanks, 0);
    if (!group.members.empty() && size > 0 && size != std::ssize(group.members))
      fail("world_size " + std::to_string(size) + " but " + std::to_string(group.members.size()) +
           " global_ranks");
    const std::set<WorldRank> unique(group.members.begin(), group.members.end());
    if (unique.size() != group.members.size()) fail("global_ranks has a rank twice");
    if (group.members.empty()) trace_.ranks = std::max(trace_.ranks, static_cast<int>(size));
    for (const TraceGroup& known : trace_.groups) {
      if (known.name != group.name) continue;
      if (known.members == group.members) return;
      // Groups with one number on different ranks are different communicators.
      if (!group.members.empty() && !known.members.empty()) continue;
      fail("process group " + quote(group.name) + " is defined twice, with other members");
    }
    trace_.groups.push_back(std::move(group));
  }

  // That which an init or a call before has named; kNoIndex: none.
  std::uint32_t known_group(const std::string& name) const {
    for (std::size_t i = 0; i < trace_.groups.size(); ++i) {
      const auto& [its_name, members] = trace_.groups[i];
      if (its_name == name && (members.empty() || std::find(members.begin(), members.end(),
                                                            rank_->rank) != members.end()))
        return static_cast<std::uint32_t>(i);
    }
    return kNoIndex;
  }

  std::uint32_t group_of(const JsonNode& element) {
    const std::string name = group_name(element);
    if (const std::uint32_t known = known_group(name); known != kNoIndex) return known;
    // Traces without an init give the number of participating ranks.
    const std::int64_t size = integer(element, "world_size", kMostTraceRanks, 0);
    if (!name.empty() && name != "0" && size == 0)
      fail("process group " + quote(name) + " has no init before it and no world_size");
    TraceGroup group{name, {}};
    if (find(element, "global_ranks")) {
      define_group(element);
      return static_cast<std::uint32_t>(trace_.groups.size() - 1);
    }
    if (trace_.ranks > 0 && size > 0 && size != trace_.ranks)
      fail("process group " + quote(name) + " of " + std::to_string(size) +
           " ranks has no init that names them");
    trace_.ranks = std::max(trace_.ranks, static_cast<int>(size));
    trace_.groups.push_back(std::move(group));
    return static_cast<std::uint32_t>(trace_.groups.size() - 1);
  }

  void communicate(const JsonNode& element) {
    const std::string_view name = text(element, "comms");
    const auto known = torch_call(name);
    if (!known) fail("comms " + quote(name) + " is no call of PyTorch");
    if (known->call == TorchCall::init) return define_group(element);
    if (known->call == TorchCall::wait) return wait(element);
    if (known->call == TorchCall::batch) {
      after_.insert(after_.end(), batch_.begin(), batch_.end());
      batch_.clear();
      after_ = {add_event(*rank_, event_of(name), after_)};
      return;
    }
    TraceEvent event = event_of(name);
    if (known->call == TorchCall::collective)
      collective(element, known->func, event);
    else
      transfer(element, known->call == TorchCall::send, event);
    const bool batched = known->call != TorchCall::collective && batches(element);
    const std::uint32_t at = add_event(*rank_, event, after_);
    const auto req = request(element);
    const bool async = req && waited_.contains(*req);
    if (async) requests_[*req].push_back(at);
    if (batched && !async) batch_.push_back(at);
    if (!batched && !async) after_ = {at};
  }

  bool batches(const JsonNode& element) const {
    const JsonNode* batch = find(element, "use_batch");
    return batch && batch->kind == JsonNode::Kind::boolean && batch->integer != 0;
  }

  void wait(const JsonNode& element) {
    const auto of = request(element);
    const auto at = of ? requests_.find(*of) : requests_.end();
    if (at == requests_.end()) {
      --trace_.used;
      ++trace_.left_out["waits for calls that the trace does not have"];
      return;
    }
    std::vector<std::uint32_t> deps = at->second;
    deps.insert(deps.end(), after_.begin(), after_.end());
    requests_.erase(at);
    after_ = {add_event(*rank_, event_of("wait"), deps)};
  }

  void collective(const JsonNode& element, Func func, TraceEvent& event) {
    event.kind = TraceEvent::Kind::collective;
    event.func = func;
    event.group = group_of(element);
    if (func == Func::barrier) return;
    const std::uint32_t bytes = element_bytes(element);
    event.dtype = played_as(bytes);
    const std::uint64_t width = bytes;
    const auto in = integer(element, "in_msg_size", kMostElements) * width;
    const auto out = integer(element, "out_msg_size", kMostElements) * width;
    event.stated = in;
    event.blocks = func == Func::all_gather || func == Func::gather;
    if (func == Func::scatter) {
      event.stated = out;
      event.blocks = true;
    }
    if (has_root(func)) root(element, event);
    if (func == Func::all_to_all || func == Func::all_to_all_v) splits(element, event, out);
  }

  // The root is a global rank.
  void root(const JsonNode& element, TraceEvent& event) {
    const std::int64_t root = integer(element, "root", kMostTraceRanks, 0);
    const auto& members = trace_.groups[event.group].members;
    const auto at = std::find(members.begin(), members.end(), WorldRank(root));
    event.peer = members.empty() ? static_cast<std::int32_t>(root)
                                 : static_cast<std::int32_t>(at - members.begin());
    if (!members.empty() && at == members.end()) fail("the root is no member of its process group");
  }

  void splits(const JsonNode& element, TraceEvent& event, std::uint64_t out) {
    const JsonNode* list = find(element, "in_split");
    if (!list || list->kind != JsonNode::Kind::array || list->size == 0) {
      event.func = Func::all_to_all;
      return;
    }
    std::vector<std::uint64_t> counts;
    std::uint64_t sum = 0;
    for (const JsonNode& count : json_->children(*list)) {
      if (!count.is_integer() || count.integer < 0 || count.integer > kMostElements)
        fail("in_split has a member that is no number of elements");
      counts.push_back(static_cast<std::uint64_t>(count.integer));
      sum += counts.back();
    }
    if (sum * bytes_of(event.dtype) != event.stated)
      fail("in_split has " + std::to_string(sum) + " elements together, in_msg_size says other");
    event.func = Func::all_to_all_v;
    event.splits = static_cast<std::uint32_t>(trace_.splits.size());
    event.stated = out;
    trace_.splits.push_back(std::move(counts));
  }

  void transfer(const JsonNode& element, bool sends, TraceEvent& event) {
    event.kind = sends ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
    const std::uint32_t bytes = element_bytes(element);
    event.dtype = played_as(bytes);
    event.stated = static_cast<std::uint64_t>(
                       integer(element, sends ? "in_msg_size" : "out_msg_size", kMostElements)) *
                   bytes;
    const std::int64_t peer =
        integer(element, sends ? "dst_rank" : "src_rank", kMostTraceRanks - 1);
    if (peer == rank_->rank.value()) fail("a message of a rank to itself");
    // Other ranks need not say in what group they are that has no list of members.
    const std::uint32_t group = known_group(group_name(element));
    if (group != kNoIndex && !trace_.groups[group].members.empty()) event.group = group;
    event.peer = static_cast<std::int32_t>(peer);
  }

  Trace& trace_;
  const JsonTape* json_ = nullptr;
  TraceRank* rank_ = nullptr;
  std::uint64_t number_ = 0;                                // of the element
  std::set<Request> waited_;                                // requests that some wait names
  std::map<Request, std::vector<std::uint32_t>> requests_;  // calls in flight
  std::vector<std::uint32_t> after_;  // events that the next element comes after
  std::vector<std::uint32_t> batch_;  // messages that the next batch_isend_irecv ends
};

}  // namespace

Trace import_param(const std::vector<std::string>& files, int) {
  Trace trace;
  trace.format = "param";
  trace.unit = "nanoseconds (startTime_ns), of each rank's clock";
  trace.position_unit = "element";
  trace.notes.emplace_back(
      "times between calls hold communication as well as computation: no delays are made of them");
  ParamImporter importer(trace);
  std::map<int, std::string> ranks;
  const std::vector<std::optional<int>> named = ranks_in_names(files);
  for (std::size_t f = 0; f < files.size(); ++f) {
    if (!named[f] && files.size() > 1)
      throw Error(files[f] +
                  ": which rank's trace is this? name the files rank0.json, rank1.json, ...");
    if (!named[f]) trace.notes.push_back(note_of_rank_0(files[f]));
    if (!ranks.emplace(named[f].value_or(0), files[f]).second)
      throw Error(files[f] + ": a second trace of rank " + std::to_string(named[f].value_or(0)));
  }
  for (const auto& [rank, file] : ranks) importer.read_rank(file, rank);
  if (const auto& [last, file] = *ranks.rbegin(); trace.ranks > 0 && last >= trace.ranks)
    throw Error(file + ": by its name a trace of rank " + std::to_string(last) +
                ", but world_size is " + std::to_string(trace.ranks) +
                "; name the files rank0.json to rank" + std::to_string(trace.ranks - 1) +
                ".json, or give each group's init with its global_ranks");
  return trace;
}

}  // namespace ghostrank
