#include "profiles/trace/writers/param.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "profiles/error.h"
#include "profiles/load/json.h"

namespace ghostrank {
namespace {

std::string_view torch_type(const Op& op) {
  if (op.floats && op.dtype == DataType::int64) return "double";
  if (op.floats && op.dtype == DataType::uint8) return "float8_e4m3fn";
  switch (op.dtype) {
    case DataType::int32:
      return "int";
    case DataType::float32:
      return "float";
    case DataType::bfloat16:
      return "bfloat16";
    case DataType::int64:
      return "long";
    case DataType::uint8:
      return "byte";
    case DataType::float16:
      return "half";
  }
  throw Error("a type of elements that PyTorch does not have");
}

// PyTorch's name of a call, and whether a rank's buffers are its block or all blocks.
struct Named {
  Func func;
  std::string_view name;
  bool whole_in, whole_out, rooted;
};
constexpr Named kCalls[] = {{Func::all_reduce, "all_reduce", false, false, false},
                            {Func::all_gather, "all_gather_base", false, true, false},
                            {Func::reduce_scatter, "reduce_scatter_base", true, false, false},
                            {Func::all_to_all, "all_to_all", true, true, false},
                            {Func::all_to_all_v, "all_to_allv", false, false, false},
                            {Func::broadcast, "broadcast", false, false, true},
                            {Func::reduce, "reduce", false, false, true},
                            {Func::gather, "gather", false, true, true},
                            {Func::scatter, "scatter", true, false, true},
                            {Func::barrier, "barrier", false, false, false}};

const Named& named(Func func) {
  const auto* const found = std::find_if(std::begin(kCalls), std::end(kCalls),
                                         [&](const Named& one) { return one.func == func; });
  if (found == std::end(kCalls))
    throw Error(
        std::string(name_of(func)) +
        ": PARAM does not have calls of uneven sizes but all-to-all; export another profile");
  return *found;
}

class ParamWriter {
 public:
  ParamWriter(const Workload& workload, WorldRank rank) : workload_(workload), rank_(rank) {}

  std::string run(const IssueOrders& orders) {
    const Program& program = orders.program(rank_);
    define_groups();
    for (const IssuedOp& one : orders.of(rank_)) {
      for (const std::size_t call : one.ends) await(call);
      if (one.op->kind != Op::Kind::compute) start(program, one);
      ++issued_;
    }
    while (!running_.empty()) await(*running_.begin());
    return (text_.empty() ? "[" : text_) + "\n]\n";  // empty: a rank that talks to nobody
  }

 private:
  void element(const Json& json) { text_ += (text_.empty() ? "[\n" : ",\n") + json.dump(); }

  // Every communicator of the rank, before any call.
  void define_groups() {
    group_of_.resize(workload_.group_names.size());
    for (std::size_t g = 0; g < workload_.groups.size(); ++g) {
      const Group& group = workload_.groups[g];
      if (std::find(group.members.begin(), group.members.end(), rank_) == group.members.end())
        continue;
      group_of_[group.kind] = &group;
      Json members = Json::array();
      for (const WorldRank member : group.members) members.push_back(member.value());
      element({{"comms", "init"},
               {"req", 0},
               {"pg_id", g},
               {"pg_desc", workload_.group_names[group.kind]},
               {"global_ranks", std::move(members)},
               {"world_size", group.members.size()}});
    }
  }

  const Group& group(const Op& op) const {
    if (!group_of_[op.group])
      throw Error("rank " + to_string(rank_) + " is in no group " +
                  workload_.group_names[op.group]);
    return *group_of_[op.group];
  }

  std::size_t number(const Group& group) const { return &group - workload_.groups.data(); }

  // Requests are numbered by the order of issue, from 1.
  void start(const Program& program, const IssuedOp& one) {
    const Op& op = *one.op;
    const Group& mine = group(op);
    const bool collective = op.kind == Op::Kind::collective;
    Json json{
        {"comms", collective ? named(op.func).name
                             : std::string_view(op.kind == Op::Kind::send ? "isend" : "irecv")},
        {"req", issued_ + 1},
        {"pg_id", number(mine)},
        {"world_size", mine.members.size()},
        {"startTime_ns", one.start / kPicosPerNano},
        {"markers", {label_of(program, one.stream, one.at)}}};
    if (op.func != Func::barrier || !collective) json["dtype"] = torch_type(op);
    collective ? add_collective(json, op, mine) : add_message(json, op, mine);
    element(json);
    running_.insert(issued_);
    group_of_call_.resize(issued_ + 1);
    group_of_call_[issued_] = number(mine);
  }

  void add_collective(Json& json, const Op& op, const Group& mine) const {
    const Named& call = named(op.func);
    if (op.func == Func::barrier) return;
    const std::size_t n = mine.members.size();
    if (op.func == Func::all_to_all_v) return add_splits(json, op, mine);
    json["in_msg_size"] = call.whole_in ? op.count * n : op.count;
    json["out_msg_size"] = call.whole_out ? op.count * n : op.count;
    if (call.rooted) json["root"] = mine.members[op.peer].value();
  }

  void add_splits(Json& json, const Op& op, const Group& mine) const {
    const std::vector<std::uint64_t>& counts = *workload_.counts[op.counts];
    const std::size_t n = mine.members.size();
    const std::size_t me =
        std::find(mine.members.begin(), mine.members.end(), rank_) - mine.members.begin();
    Json in = Json::array(), out = Json::array();
    std::uint64_t sent = 0, received = 0;
    for (std::size_t i = 0; i < n; ++i) {
      in.push_back(counts[me * n + i]), sent += counts[me * n + i];
      out.push_back(counts[i * n + me]), received += counts[i * n + me];
    }
    json["in_msg_size"] = sent, json["out_msg_size"] = received;
    json["in_split"] = std::move(in), json["out_split"] = std::move(out);
  }

  void add_message(Json& json, const Op& op, const Group& mine) const {
    const std::int64_t size = mine.members.size();
    const auto at =
        std::find(mine.members.begin(), mine.members.end(), rank_) - mine.members.begin();
    const WorldRank peer = mine.members[((at + op.peer) % size + size) % size];
    const bool sends = op.kind == Op::Kind::send;
    json["in_msg_size"] = json["out_msg_size"] = op.count;
    json["src_rank"] = (sends ? rank_ : peer).value();
    json["dst_rank"] = (sends ? peer : rank_).value();
    json["use_batch"] = false;
  }

  void await(std::size_t call) {
    if (running_.erase(call) == 0) return;  // another op has waited for it
    element({{"comms", "wait"}, {"req", call + 1}, {"pg_id", group_of_call_[call]}});
  }

  const Workload& workload_;
  const WorldRank rank_;
  std::vector<const Group*> group_of_;      // by kind of group: the rank's own
  std::vector<std::size_t> group_of_call_;  // by number of the op
  std::set<std::size_t> running_;           // calls that nothing has waited for
  std::size_t issued_ = 0;
  std::string text_;
};

}  // namespace

std::string param_trace(const Workload& workload, const IssueOrders& orders, WorldRank rank) {
  return ParamWriter(workload, rank).run(orders);
}

}  // namespace ghostrank
