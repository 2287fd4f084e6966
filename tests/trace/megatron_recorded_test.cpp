// An iteration of Megatron-LM's pretrain_gpt.py, as PyTorch recorded it on a GPU
// (recorded/README.md), against the plan of a job of the same model: the same calls and messages in
// the same order in every communicator of every rank, of the same types and sizes.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "profiles/planners/plan.h"
#include "tests/trace/traces.h"

namespace ghostrank {
namespace {

using test::load_text;

constexpr int kRanks = 4;

struct RecordedPlan {
  const char* name;
  const char* model;     // what differs from the base
  const char* parallel;  // of the plan
  std::uint64_t micro_batches;
  bool tensor = false, sequence = false, stages = false;  // parallelism of two ranks
};
void PrintTo(const RecordedPlan& recorded, std::ostream* out) { *out << recorded.name; }

constexpr const char* kGpt = "base: gpt2, ffn: 512";
constexpr const char* kLlama = "base: llama2-7b, ffn: 384, kv_heads: 2";

const std::vector<RecordedPlan> kRecordedPlans{
    {"tp-sp-zero", kGpt,
     "tp: 2, global_batch: 8, sequence_parallel: true, distributed_optimizer: true, bucket_size: "
     "100000",
     2, true, true},
    {"tp-llama", kLlama, "tp: 2, global_batch: 8, overlap_grad_reduce: false", 2, true},
    {"pp", kGpt, "pp: 2, global_batch: 16, overlap_grad_reduce: false", 4, false, false, true},
    {"tp-sp-pp", kGpt,
     "tp: 2, pp: 2, global_batch: 8, sequence_parallel: true, overlap_grad_reduce: false", 4, true,
     true, true},
    {"interleaved", "base: llama2-7b, ffn: 384, kv_heads: 2, layers: 4",
     "pp: 2, schedule: interleaved, interleave: 2, global_batch: 16, distributed_optimizer: true, "
     "bucket_size: 100000",
     4, false, false, true},
    {"experts", "base: mixtral-8x7b, kv_heads: 2, experts: {count: 4, top_k: 2, ffn: 384}",
     "ep: 2, global_batch: 16, distributed_optimizer: true, overlap_grad_reduce: false, "
     "overlap_param_gather: false",
     2}};

Workload planned(const RecordedPlan& recorded) {
  const std::string model = recorded.model;
  const std::string layers = model.find("layers:") == std::string::npos ? ", layers: 2" : "";
  return plan_workload(load_text("schema: ghostrank/job/1\n"
                                 "model: {" +
                                 model + layers +
                                 ", hidden: 128, heads: 4, sequence: 64, vocabulary: 501}\n" +
                                 "device: {base: h100-sxm, memory_bytes: 0}\n"
                                 "precision: {parameters: bf16, gradients: fp32}\n"
                                 "cluster: {nodes: 1, gpus_per_node: 4, nics_per_node: 4}\n"
                                 "parallel: {framework: megatron, micro_batch: 2, " +
                                 recorded.parallel + "}\n")
                           .spec);
}

Trace traced(const RecordedPlan& recorded) {
  std::vector<std::string> files;
  for (int rank = 0; rank < kRanks; ++rank)
    files.push_back(std::string(GHOSTRANK_SOURCE_DIR "/tests/trace/recorded/kineto-megatron-") +
                    recorded.name + "-rank" + std::to_string(rank) + ".json.gz");
  return import_trace(files, "", 0);
}

// A communicator is known by its members, a message by its two ends.
using Members = std::vector<int>;
std::string text_of(const Members& members) {
  std::string out;
  for (const int rank : members) out += (out.empty() ? "" : ",") + std::to_string(rank);
  return out;
}
Members numbers(const std::vector<WorldRank>& ranks) {
  Members out;
  for (const WorldRank rank : ranks) out.push_back(rank.value());
  if (out.empty())
    for (int rank = 0; rank < kRanks; ++rank) out.push_back(rank);
  return out;
}

struct Call {
  Func func = Func::all_reduce;
  std::uint64_t count = 0, width = 0;
  bool message = false;

  std::string text() const {
    return std::string(message ? "message" : name_of(func)) + " " + std::to_string(count) + " x " +
           std::to_string(width);
  }
  bool is_scalar() const { return !message && func == Func::all_reduce && count == 1; }
};
// By communicator ("0,2"), or ends of messages ("0 to 2").
using Calls = std::map<std::string, std::vector<Call>>;

Calls calls_of(const Trace& trace, int rank) {
  Calls out;
  const TraceRank& given =
      *std::find_if(trace.given.begin(), trace.given.end(),
                    [&](const TraceRank& r) { return r.rank.value() == rank; });
  for (const TraceEvent& event : given.events) {
    if (event.kind == TraceEvent::Kind::collective) {
      const Members members =
          event.group == kNoIndex ? numbers({}) : numbers(trace.groups[event.group].members);
      const CallSize size = sized(trace, event, static_cast<int>(members.size()));
      out[text_of(members)].push_back({event.func, size.count, bytes_of(event.dtype)});
    } else if (event.kind == TraceEvent::Kind::send || event.kind == TraceEvent::Kind::recv) {
      const bool sends = event.kind == TraceEvent::Kind::send;
      const std::string ends = std::to_string(sends ? rank : event.peer) + " to " +
                               std::to_string(sends ? event.peer : rank);
      const std::uint64_t width = bytes_of(event.dtype);
      out[ends].push_back({Func::all_reduce, event.stated / width, width, true});
    }
  }
  return out;
}

Calls calls_of(const Workload& workload, int rank) {
  Calls out;
  const WorldRank self(rank);
  const auto members_of = [&](std::uint16_t kind) {
    for (const Group& group : workload.groups)
      if (group.kind == kind) {
        const Members members = numbers(group.members);
        if (std::find(members.begin(), members.end(), rank) != members.end()) return members;
      }
    return Members{};
  };
  for (const OpList& stream : workload.roles[workload.role_of[self]].iterations.back().streams)
    for (const Op& op : stream) {
      const bool message = op.kind == Op::Kind::send || op.kind == Op::Kind::recv;
      if (!message && op.kind != Op::Kind::collective) continue;
      const Members members = members_of(op.group);
      const Call call{op.func, op.count, bytes_of(op.dtype), message};
      if (!message) {
        out[text_of(members)].push_back(call);
        continue;
      }
      const auto at = std::find(members.begin(), members.end(), rank) - members.begin();
      const auto size = std::ssize(members);
      const std::string peer =
          std::to_string(members[static_cast<std::size_t>(((at + op.peer) % size + size) % size)]);
      const std::string own = std::to_string(rank);
      out[op.kind == Op::Kind::send ? own + " to " + peer : peer + " to " + own].push_back(call);
    }
  return out;
}

// Numbers of calls that the plan leaves out or plays otherwise (docs/accuracy.md); the test takes
// them out of both sides.
struct Known {
  std::uint64_t broadcasts = 0, scalars = 0, whole_embeddings = 0, gathered_again = 0;
};

// Takes out broadcasts of the batch in a tensor-parallel group, and all-reduces of one number.
void take_unplayed(Calls& calls, Known& known) {
  for (auto& [where, list] : calls)
    std::erase_if(list, [&](const Call& call) {
      if (call.message) return false;
      known.scalars += call.is_scalar();
      known.broadcasts += call.func == Func::broadcast;
      return call.is_scalar() || call.func == Func::broadcast;
    });
}

// Learned positions are added to whole hidden states, so under sequence parallelism Megatron
// all-reduces the embeddings, its only all-reduce of 16 bits; plans reduce-scatter them.
void take_whole_embeddings(Calls& calls, Known& known) {
  for (auto& [where, list] : calls)
    for (Call& call : list)
      if (!call.message && call.func == Func::all_reduce && call.width == 2) {
        call = {Func::reduce_scatter, call.count / 2, 2};
        ++known.whole_embeddings;
      }
}

// Clears sizes of all-to-alls, because the router sends uneven rows. Takes out repeated gathers:
// each of two optimizers, of dense and of expert parameters, gathers all parameters.
void take_routing(Calls& calls, Known& known) {
  for (auto& [where, list] : calls) {
    for (Call& call : list)
      if (call.func == Func::all_to_all || call.func == Func::all_to_all_v)
        call = {Func::all_to_all, 0, 0};
    const auto again = [&](const Call& a, const Call& b) {
      const bool same = a.func == Func::all_gather && a.text() == b.text();
      known.gathered_again += same;
      return same;
    };
    list.erase(std::unique(list.begin(), list.end(), again), list.end());
  }
}

// Megatron's model chunks gather their buckets from the last layers on, plans from the first on.
void take_order_of_gathers(Calls& calls) {
  for (auto& [where, list] : calls) {
    const auto end = std::find_if(list.begin(), list.end(),
                                  [](const Call& call) { return call.func != Func::all_gather; });
    std::sort(list.begin(), end, [](const Call& a, const Call& b) { return a.count < b.count; });
  }
}

std::string text_of(const Calls& calls) {
  std::string out;
  for (const auto& [where, list] : calls) {
    if (list.empty()) continue;
    out += where + ":\n";
    for (const Call& call : list) out += "  " + call.text() + "\n";
  }
  return out;
}

class MegatronRecorded : public testing::TestWithParam<RecordedPlan> {};

TEST_P(MegatronRecorded, HasTheCallsOfThePlan) {
  const RecordedPlan& recorded = GetParam();
  const std::string name = recorded.name;
  const Trace trace = traced(recorded);
  const Workload plan = planned(recorded);
  for (int rank = 0; rank < kRanks; ++rank) {
    Calls real = calls_of(trace, rank), played = calls_of(plan, rank);
    Known known, of_plan;
    take_unplayed(real, known);
    take_unplayed(played, of_plan);
    if (recorded.sequence) take_whole_embeddings(real, known);
    if (name == "experts") {
      take_routing(real, known);
      take_routing(played, of_plan);
    } else if (name == "interleaved") {
      take_order_of_gathers(real);
      take_order_of_gathers(played);
    }
    EXPECT_EQ(text_of(played), text_of(real)) << "rank " << rank;
    const bool first = rank < kRanks / 2 || !recorded.stages,
               last = rank >= kRanks / 2 || !recorded.stages;
    // The first stage gets tokens and positions, the last one labels and weights of the loss.
    const std::uint64_t fields = (first ? 2 : 0) + (last ? 2 : 0);
    EXPECT_EQ(known.broadcasts, recorded.tensor ? recorded.micro_batches * fields : 0);
    // Norm (played) and whether to run again; with model parallelism success, norm, learning rate.
    EXPECT_EQ(known.scalars, recorded.tensor || recorded.stages ? 5u : 2u);
    EXPECT_EQ(of_plan.scalars, 1u);
    EXPECT_EQ(known.whole_embeddings, recorded.sequence && first ? recorded.micro_batches : 0);
    EXPECT_EQ(known.gathered_again, name == "experts" ? 2u : 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, MegatronRecorded, testing::ValuesIn(kRecordedPlans),
                         [](const auto& of) {
                           std::string name = of.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ghostrank
