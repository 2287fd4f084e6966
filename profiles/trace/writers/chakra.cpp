#include "profiles/trace/writers/chakra.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/common/data_type.h"
#include "profiles/error.h"

namespace ghostrank {
namespace {

// Protobuf's wire format, as far as these messages need it.
void varint(std::string& out, std::uint64_t value) {
  for (; value > 127; value >>= 7) out += static_cast<char>((value & 127) | 128);
  out += static_cast<char>(value);
}
void field(std::string& out, std::uint32_t number, std::uint64_t value) {
  varint(out, number << 3);
  varint(out, value);
}
void field(std::string& out, std::uint32_t number, std::string_view bytes) {
  varint(out, number << 3 | 2);
  varint(out, bytes.size());
  out += bytes;
}

// Fields of et_def.proto.
enum NodeField : std::uint32_t {
  kId = 1,
  kName,
  kType,
  kControl,
  kData,
  kStart,
  kDuration,
  kInputs,
  kAttr = 10
};
constexpr std::uint32_t kTypes = 3;  // field of IOInfo
enum AttributeField : std::uint32_t { kAttrName = 1, kInt64 = 9, kBool = 27, kString = 29 };
enum NodeType : std::uint64_t { kMetadata = 1, kCompute = 4, kSend, kReceive, kCollective };

template <class Value>
void attribute(std::string& node, std::string_view name, AttributeField kind, const Value& value) {
  std::string out;
  field(out, kAttrName, name);
  field(out, kind, value);
  field(node, kAttr, out);
}

// The type of an op's elements as PyTorch's execution traces name it.
std::string_view tensor_type(const Op& op) {
  if (op.floats && op.dtype == DataType::int64) return "double";
  if (op.floats && op.dtype == DataType::uint8) return "c10::Float8_e4m3fn";
  switch (op.dtype) {
    case DataType::int32:
      return "int";
    case DataType::float32:
      return "float";
    case DataType::bfloat16:
      return "c10::BFloat16";
    case DataType::int64:
      return "long int";
    case DataType::uint8:
      return "unsigned char";
    case DataType::float16:
      return "c10::Half";
  }
  throw Error("a type of elements that PyTorch does not have");
}

// Bytes that Chakra calls the size of a call, and its CollectiveCommType.
struct Comm {
  std::uint64_t type = 0, bytes = 0;
};
Comm comm_of(const Op& op, std::size_t ranks) {
  const std::uint64_t buffer = op.count * bytes_of(op.dtype), whole = buffer * ranks;
  switch (op.func) {
    case Func::all_reduce:
      return {0, buffer};
    case Func::reduce:
      return {1, buffer};
    case Func::all_gather:
      return {2, buffer};
    case Func::gather:
      return {3, buffer};
    case Func::scatter:
      return {4, whole};
    case Func::broadcast:
      return {5, buffer};
    case Func::all_to_all:
      return {6, whole};
    case Func::reduce_scatter:
      return {7, whole};
    case Func::barrier:
      return {9, 0};
    default:
      throw Error(std::string(name_of(op.func)) +
                  ": Chakra has no node for calls of uneven sizes; export another profile");
  }
}

std::string group_name(const Workload& workload, std::size_t group) {
  std::size_t instance = 0;
  for (std::size_t g = 0; g < group; ++g)
    instance += workload.groups[g].kind == workload.groups[group].kind;
  return workload.group_names[workload.groups[group].kind] + "." + std::to_string(instance);
}

class ChakraWriter {
 public:
  ChakraWriter(const Workload& workload, WorldRank rank, std::size_t iteration)
      : workload_(workload), rank_(rank) {
    const Role& role = workload.roles[workload.role_of[rank]];
    program_ = &role.iterations[std::min(iteration, role.iterations.size() - 1)];
    if (carries_over(*program_))
      throw Error("a stream goes on beside the next iteration, and a trace has one iteration");
  }

  std::string run() {
    std::string head;
    field(head, 1, std::string_view("0.0.4"));
    message(head);
    tie_events();
    for (std::size_t s = 0; s < program_->streams.size(); ++s) write_stream(s);
    return std::move(out_);
  }

 private:
  void message(const std::string& bytes) {
    varint(out_, bytes.size());
    out_ += bytes;
  }

  // Every op but a wait is a node, numbered stream by stream; a record is a METADATA node that has
  // only dependencies. Finds the record of every wait.
  void tie_events() {
    const auto& streams = program_->streams;
    std::vector<std::vector<std::uint64_t>> records(program_->events);  // nodes
    std::uint64_t node = 0;
    for (const OpList& ops : streams)
      for (const Op& op : ops) {
        if (op.kind == Op::Kind::wait) continue;
        if (op.kind == Op::Kind::record) records[op.event].push_back(node);
        ++node;
      }
    std::vector<std::size_t> taken(program_->events);
    awaited_.resize(streams.size());
    for (std::size_t s = 0; s < streams.size(); ++s)
      for (const Op& op : streams[s]) {
        if (op.kind != Op::Kind::wait) continue;
        if (op.previous) throw Error("a wait for the iteration before; a trace has one iteration");
        if (taken[op.event] == records[op.event].size())
          throw Error("a stream waits for what no stream does in this iteration; a trace has one");
        awaited_[s].push_back(records[op.event][taken[op.event]++]);
      }
  }

  // A node that the next `left` collectives of a stream wait for; later ones wait for those.
  struct Gate {
    std::uint64_t node = 0;
    std::size_t left = 0;
  };

  void write_stream(std::size_t s) {
    const std::size_t at_once = workers(*program_, s);
    computed_ = 0;
    std::size_t waits = 0;
    std::vector<Gate> gates;
    std::vector<std::uint64_t> running;  // collectives in flight, at most `at_once`
    const OpList& ops = program_->streams[s];
    for (std::size_t at = 0; at < ops.size(); ++at) {
      const Op& op = ops[at];
      if (op.kind == Op::Kind::wait) {
        gates.push_back({awaited_[s][waits++], at_once});
        continue;
      }
      std::vector<std::uint64_t> after;
      for (const Gate& gate : gates) after.push_back(gate.node);
      if (op.kind == Op::Kind::collective) {
        if (running.size() == at_once) {
          after.push_back(running.front());
          running.erase(running.begin());
        }
        running.push_back(next_);
        for (Gate& gate : gates) --gate.left;
        std::erase_if(gates, [](const Gate& gate) { return gate.left == 0; });
      } else {
        after.insert(after.end(), running.begin(), running.end());
        if (op.kind != Op::Kind::record) {
          running.clear();
          gates = {{next_, at_once}};
        }
      }
      write_node(op, s, at, after);
      ++next_;
    }
  }

  // The stream's next computation in whole microseconds. What is rounded off one is added to those
  // behind it, so that their sum is right.
  std::uint64_t micros(Picoseconds duration) {
    const auto rounded = [](Picoseconds time) {
      return (time + kPicosPerMicro / 2) / kPicosPerMicro;
    };
    const Picoseconds before = std::exchange(computed_, computed_ + duration);
    return static_cast<std::uint64_t>(rounded(computed_) - rounded(before));
  }

  void write_node(const Op& op, std::size_t stream, std::size_t at,
                  const std::vector<std::uint64_t>& after) {
    std::string node, packed;
    if (next_ > 0) field(node, kId, next_);
    field(node, kName,
          op.kind == Op::Kind::record ? std::string("record") : label_of(*program_, stream, at));
    for (const std::uint64_t one : after) varint(packed, one);
    if (op.kind == Op::Kind::record) {
      field(node, kType, kMetadata);
      if (!packed.empty()) field(node, kData, packed);
    } else if (op.kind == Op::Kind::compute) {
      field(node, kType, kCompute);
      if (!packed.empty()) field(node, kData, packed);
      field(node, kDuration, micros(op.duration));
      if (stream > 0) attribute(node, "stream", kInt64, static_cast<std::uint64_t>(stream));
    } else {
      const bool collective = op.kind == Op::Kind::collective;
      field(node, kType, collective ? kCollective : op.kind == Op::Kind::send ? kSend : kReceive);
      if (!packed.empty()) field(node, kData, packed);
      if (!collective || op.func != Func::barrier) {
        std::string inputs;
        field(inputs, kTypes, "['Tensor(" + std::string(tensor_type(op)) + ")']");
        field(node, kInputs, inputs);
      }
      collective ? write_call(node, op) : write_message(node, op);
    }
    attribute(node, "is_cpu_op", kBool, std::uint64_t{0});
    message(node);
  }

  std::size_t group_of(const Op& op) const {
    for (std::size_t g = 0; g < workload_.groups.size(); ++g) {
      const Group& group = workload_.groups[g];
      if (group.kind == op.group &&
          std::find(group.members.begin(), group.members.end(), rank_) != group.members.end())
        return g;
    }
    throw Error("rank " + to_string(rank_) + " is in no group " + workload_.group_names[op.group]);
  }

  void write_call(std::string& node, const Op& op) const {
    const std::size_t group = group_of(op);
    const Comm comm = comm_of(op, workload_.groups[group].members.size());
    attribute(node, "comm_type", kInt64, comm.type);
    attribute(node, "comm_size", kInt64, comm.bytes);
    attribute(node, "pg_name", kString, std::string_view(group_name(workload_, group)));
    if (op.func == Func::broadcast || op.func == Func::reduce || op.func == Func::gather ||
        op.func == Func::scatter)
      attribute(node, "root_rank", kInt64, static_cast<std::uint64_t>(op.peer));
  }

  void write_message(std::string& node, const Op& op) const {
    const auto& members = workload_.groups[group_of(op)].members;
    const std::int64_t size = members.size();
    const auto at = std::find(members.begin(), members.end(), rank_) - members.begin();
    const WorldRank peer = members[((at + op.peer) % size + size) % size];
    const bool sends = op.kind == Op::Kind::send;
    attribute(node, "comm_src", kInt64, std::uint64_t{(sends ? rank_ : peer).index()});
    attribute(node, "comm_dst", kInt64, std::uint64_t{(sends ? peer : rank_).index()});
    attribute(node, "comm_size", kInt64, op.count * bytes_of(op.dtype));
    attribute(node, "comm_tag", kInt64, std::uint64_t{op.group});
  }

  const Workload& workload_;
  const WorldRank rank_;
  const Program* program_ = nullptr;
  std::vector<std::vector<std::uint64_t>> awaited_;  // by stream: the record of each wait
  std::uint64_t next_ = 0;
  Picoseconds computed_ = 0;  // so far, by the stream
  std::string out_;
};

}  // namespace

std::string chakra_trace(const Workload& workload, WorldRank rank, std::size_t iteration) {
  return ChakraWriter(workload, rank, iteration).run();
}

std::string chakra_groups(const Workload& workload) {
  std::string out = "{";
  for (std::size_t g = 0; g < workload.groups.size(); ++g) {
    out += std::string(g == 0 ? "" : ",\n ") + "\"" + group_name(workload, g) + "\": [";
    const auto& members = workload.groups[g].members;
    for (std::size_t i = 0; i < members.size(); ++i)
      out += (i == 0 ? "" : ", ") + to_string(members[i]);
    out += "]";
  }
  return out + "}\n";
}

}  // namespace ghostrank
