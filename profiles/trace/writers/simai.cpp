#include "profiles/trace/writers/simai.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "profiles/error.h"
#include "profiles/trace/writers/issue_order.h"

namespace ghostrank {
namespace {

// A computation and the call behind it, either of which may be missing.
struct Item {
  const Op* compute = nullptr;
  const Op* call = nullptr;
  std::string label;  // of the computation, or else of the call
  bool blocks = true;
  Picoseconds update = 0;  // computed when the call has ended
};

std::string_view simai_name(const Op& op) {
  switch (op.func) {
    case Func::all_reduce:
      return "ALLREDUCE";
    case Func::all_gather:
      return "ALLGATHER";
    case Func::reduce_scatter:
      return "REDUCESCATTER";
    case Func::all_to_all:
      return "ALLTOALL";
    case Func::broadcast:
      if (op.peer != 0)
        throw Error("SimAI's broadcast has no root, and here member " + std::to_string(op.peer) +
                    " sends; export another format");
      return "BROADCAST";
    default:
      throw Error(std::string(name_of(op.func)) +
                  ": SimAI has no such call; export another format");
  }
}

std::uint64_t nanos(Picoseconds time) { return (time + kPicosPerNano / 2) / kPicosPerNano; }

class SimaiWriter {
 public:
  explicit SimaiWriter(const Workload& workload) : workload_(workload) {}

  std::string run(std::size_t iteration) {
    const Program& program = program_of_all(iteration);
    find_groups(program);
    const std::vector<Item> items = items_of(program);
    const auto overlapping =
        std::find_if(items.begin(), items.end(), [](const Item& one) { return !one.blocks; });
    std::string rows;
    for (auto at = items.begin(); at != overlapping; ++at) rows += forward_row(*at);
    for (auto at = items.end(); at != overlapping;) rows += backward_row(*--at);
    return "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: " + std::to_string(tp_) +
           " ep: " + std::to_string(ep_) +
           " pp: 1 vpp: 1 ga: 1 all_gpus: " + std::to_string(workload_.ranks) +
           " checkpoints: 0 checkpoint_initiates: 0\n" + std::to_string(items.size()) + "\n" + rows;
  }

 private:
  // The one program that all ranks play.
  const Program& program_of_all(std::size_t iteration) const {
    const auto of = [&](const Role& role) -> const Program& {
      return role.iterations[std::min(iteration, role.iterations.size() - 1)];
    };
    const Program& first = of(workload_.roles.front());
    for (const Role& role : workload_.roles) {
      const Program& other = of(role);
      const bool alike = first.labels == other.labels &&
                         first.streams.size() == other.streams.size() &&
                         std::equal(first.streams.begin(), first.streams.end(),
                                    other.streams.begin(), [](const OpList& a, const OpList& b) {
                                      return std::equal(a.begin(), a.end(), b.begin(), b.end());
                                    });
      if (!alike)
        throw Error("ranks play different programs (" + workload_.roles.front().name + ", " +
                    role.name + "), and SimAI has one for all; export another format");
    }
    return first;
  }

  // Groups of neighbouring ranks are SimAI's `tp`, groups with a stride over all ranks its `dp`.
  void find_groups(const Program& program) {
    std::vector<bool> used(workload_.group_names.size());
    for (const OpList& stream : program.streams)
      for (const Op& op : stream) {
        if (op.kind == Op::Kind::send || op.kind == Op::Kind::recv)
          throw Error("SimAI's rows have no messages from rank to rank; export another format");
        if (op.kind == Op::Kind::collective) used[op.group] = true;
      }
    for (const Group& group : workload_.groups) {
      const auto size = static_cast<int>(group.members.size());
      if (used[group.kind] && size < workload_.ranks && size > 1 &&
          group.members[1].value() - group.members[0].value() == 1)
        tp_ = size;
    }
    is_tp_.resize(used.size());
    for (const Group& group : workload_.groups) {
      if (!used[group.kind]) continue;
      const bool tp = is(group, 1, tp_) && tp_ > 1;
      if (!tp && !is(group, tp_, workload_.ranks / tp_))
        throw Error("communicator " + workload_.group_names[group.kind] +
                    " is neither of neighbours nor strided over all of them, as SimAI's are; "
                    "export another format");
      is_tp_[group.kind] = tp;
    }
  }

  static bool is(const Group& group, int stride, int size) {
    if (static_cast<int>(group.members.size()) != size) return false;
    for (std::size_t i = 1; i < group.members.size(); ++i)
      if (group.members[i].value() - group.members[i - 1].value() != stride) return false;
    return true;
  }

  std::vector<Item> items_of(const Program& program) const {
    const std::vector<IssuedOp> ops = issue_order(program);
    check_one_computes(program, ops);
    std::vector<Item> items;
    std::vector<std::size_t> overlapping;  // calls, by number of the op
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const bool computes = ops[i].op->kind == Op::Kind::compute;
      if (ends_any(ops[i], overlapping) && (computes || blocks(ops, i))) {
        add_end(program, ops, i, overlapping.back(), items);
        break;
      }
      if (computes || items.empty() || items.back().call)
        items.emplace_back().label = label_of(program, ops[i].stream, ops[i].at);
      if (computes) {
        items.back().compute = ops[i].op;
        continue;
      }
      // A call behind overlapping calls of its communicator is written as overlapping, too, because
      // they take turns.
      const bool behind =
          std::any_of(overlapping.begin(), overlapping.end(),
                      [&](std::size_t call) { return ops[call].op->group == ops[i].op->group; });
      items.back().call = ops[i].op;
      items.back().blocks = !behind && blocks(ops, i);
      if (items.back().blocks) continue;
      overlapping.push_back(i);
    }
    return items;
  }

  // Rows follow each other, so computations of two streams would, too.
  static void check_one_computes(const Program& program, const std::vector<IssuedOp>& ops) {
    const IssuedOp* first = nullptr;
    for (const IssuedOp& one : ops) {
      if (one.op->kind != Op::Kind::compute || one.op->duration == 0) continue;
      if (!first) first = &one;
      if (one.stream != first->stream)
        throw Error("streams " + program.stream_names[first->stream] + " and " +
                    program.stream_names[one.stream] +
                    " both compute, and SimAI's rows follow each other; export another format");
    }
  }

  static bool ends_any(const IssuedOp& op, const std::vector<std::size_t>& calls) {
    return std::any_of(calls.begin(), calls.end(), [&](std::size_t call) {
      return std::find(op.ends.begin(), op.ends.end(), call) != op.ends.end();
    });
  }

  // Adds the ops from `from` on, which wait for the overlapping calls, `last` the last of them.
  // They must follow each other; then it is the same whether all calls come before all
  // computations.
  static void add_end(const Program& program, const std::vector<IssuedOp>& ops, std::size_t from,
                      std::size_t last, std::vector<Item>& items) {
    for (const std::size_t call : ops[from].ends)
      if (ops[call].op->group != ops[last].op->group)
        throw Error(
            "calls of two communicators overlap until the end, and SimAI processes the result of "
            "one; export another format");
    Picoseconds sum = 0;
    for (std::size_t i = from; i < ops.size(); ++i) {
      if (i > from && !follows_last(ops, i))
        throw Error(
            "a call that overlaps computation is awaited before the end, which SimAI's rows cannot "
            "say; export another format");
      if (ops[i].op->kind == Op::Kind::compute) {
        sum += ops[i].op->duration;
        continue;
      }
      if (items.back().call)
        items.emplace_back().label = label_of(program, ops[i].stream, ops[i].at);
      items.back().call = ops[i].op;
      items.back().blocks = false;
    }
    const auto awaited = std::find_if(items.rbegin(), items.rend(),
                                      [](const Item& one) { return one.call && !one.blocks; });
    awaited->update = sum;
  }

  // Whether the op starts when the one before it has ended. Only one stream computes.
  static bool follows_last(const std::vector<IssuedOp>& ops, std::size_t at) {
    const IssuedOp &before = ops[at - 1], &op = ops[at];
    if (before.op->kind != Op::Kind::compute)
      return std::find(op.ends.begin(), op.ends.end(), at - 1) != op.ends.end();
    return before.stream == op.stream || op.start >= before.start + before.op->duration;
  }

  // True if the next computation waits for the call, or for one that does, or there is none.
  static bool blocks(const std::vector<IssuedOp>& ops, std::size_t call) {
    std::vector<std::size_t> chain{call};
    for (std::size_t i = call + 1; i < ops.size(); ++i) {
      const bool waits = ends_any(ops[i], chain);
      if (ops[i].op->kind == Op::Kind::compute) return waits;
      if (waits) chain.push_back(i);
    }
    return true;
  }

  std::string name(const Item& item) const {
    std::string text = item.label;
    for (char& c : text)
      if (std::isspace(static_cast<unsigned char>(c))) c = '_';
    return text.empty() ? "row" : text;
  }

  std::string call(const Item& item, bool of_weights) {
    if (!item.call) return "NONE\t0";
    const Op& op = *item.call;
    const bool tp = is_tp_[op.group];
    const std::uint64_t size = tp ? tp_ : workload_.ranks / tp_;
    const bool whole = op.func == Func::all_gather || op.func == Func::reduce_scatter ||
                       op.func == Func::all_to_all;
    const std::uint64_t bytes = op.count * bytes_of(op.dtype) * (whole ? size : 1);
    std::string text(simai_name(op));
    // Without a suffix weights are dp's and all else is tp's. `ep` names dp's members, too, where
    // ep is all of dp.
    if (tp && of_weights)
      throw Error(
          "a call of " + workload_.group_names[op.group] +
          " overlaps computation, which SimAI has for weights alone; export another format");
    if (!tp && !of_weights) {
      text += "_EP";
      ep_ = workload_.ranks / tp_;
    }
    return text + "\t" + std::to_string(bytes);
  }

  std::string forward_row(const Item& item) {
    return name(item) + "\t-1\t" +
           std::to_string(nanos(item.compute ? item.compute->duration : 0)) + "\t" +
           call(item, false) + "\t0\tNONE\t0\t0\tNONE\t0\t" + std::to_string(nanos(item.update)) +
           "\n";
  }
  std::string backward_row(const Item& item) {
    const std::string time = std::to_string(nanos(item.compute ? item.compute->duration : 0));
    const std::string input = item.blocks ? time + "\t" + call(item, false) : "0\tNONE\t0";
    const std::string weights = item.blocks ? "0\tNONE\t0" : time + "\t" + call(item, true);
    return name(item) + "\t-1\t0\tNONE\t0\t" + input + "\t" + weights + "\t" +
           std::to_string(nanos(item.update)) + "\n";
  }

  const Workload& workload_;
  int tp_ = 1, ep_ = 1;
  std::vector<bool> is_tp_;  // by kind of group
};

}  // namespace

std::string simai_workload(const Workload& workload, std::size_t iteration) {
  return SimaiWriter(workload).run(iteration);
}

}  // namespace ghostrank
