#include "profiles/load/program_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "profiles/input/keys.h"
#include "profiles/workload/rooted.h"

namespace ghostrank {
namespace {

constexpr std::uint64_t kMaxCount = 1ULL << 44;
constexpr std::uint64_t kMaxDuration = 1'000'000'000'000'000'000;  // 1e6 s
constexpr std::uint64_t kMaxEvents = 1 << 20;
constexpr std::uint64_t kMostRanks = 1 << 24;  // for an offset or a root
constexpr std::uint64_t kMaxTensors = 1 << 24;
constexpr std::size_t kMaxLists = std::numeric_limits<std::uint32_t>::max();

std::string escaped(std::string_view label) {
  std::string out;
  for (const char c : label) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f && c != '\\') {
      out += c;
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", byte);
    out += code;
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 2;
    if (text.substr(i, 2) == "\\x" && i + 4 <= text.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      out += static_cast<char>(value);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// How a transfer begins: by its direction and its communicator (Op::within).
struct TransferVerb {
  std::string_view name;
  Op::Kind kind;
  Op::Within within;
};
constexpr TransferVerb kTransferVerbs[] = {
    {"send", Op::Kind::send, Op::Within::group},    {"recv", Op::Kind::recv, Op::Within::group},
    {"isend", Op::Kind::send, Op::Within::pair},    {"irecv", Op::Kind::recv, Op::Within::pair},
    {"send?", Op::Kind::send, Op::Within::unknown}, {"recv?", Op::Kind::recv, Op::Within::unknown}};

std::string verb_of(const Op& transfer) {
  for (const TransferVerb& verb : kTransferVerbs)
    if (verb.kind == transfer.kind && verb.within == transfer.within) return std::string(verb.name);
  return {};
}

std::string what_of(const Op& op, std::span<const std::string> group_names) {
  const std::string group = communicates(op) ? " " + group_names[op.group] + " " : "";
  const std::string type(type_name(op));
  switch (op.kind) {
    case Op::Kind::compute:
      return (op.pace ? "pace " : "compute ") + std::to_string(op.duration);
    case Op::Kind::record:
      return "record " + std::to_string(op.event);
    case Op::Kind::wait:
      return "wait " + std::to_string(op.event) + (op.previous ? " previous" : "");
    case Op::Kind::send:
    case Op::Kind::recv:
      return verb_of(op) + group + (op.peer > 0 ? "+" : "") + std::to_string(op.peer) + " " + type +
             " " + std::to_string(op.count);
    case Op::Kind::collective:
      break;
  }
  std::string count = std::to_string(op.count);
  if (is_ragged(op.func)) count = "#" + std::to_string(op.counts);
  if (op.peer != 0) count += "@" + std::to_string(op.peer);
  if (op.tensor != 0) count += "~" + std::to_string(op.tensor);
  std::string verb(name_of(op.func));
  if (op.reduction != Reduction::sum) verb += ":" + std::string(name_of(op.reduction));
  return verb + group + type + " " + count;
}

// Reads one stream line by line.
class Reader {
 public:
  Reader(const Mark& mark, std::span<const std::string> group_names, Program& program,
         std::size_t stream)
      : mark_(mark), group_names_(group_names), program_(program), stream_(stream) {
    for (std::size_t i = 0; i < program.labels.size(); ++i)
      labels_.emplace(program.labels[i], static_cast<std::uint32_t>(i));
  }

  std::optional<Op> line(std::string_view text, int number) {
    rest_ = text;
    number_ = number;
    joins_ = rest_.starts_with("& ");
    if (joins_) rest_.remove_prefix(2);
    const std::string_view verb = word();
    if (verb.empty()) return std::nullopt;
    if (verb == "workers") {
      set_workers();
      return std::nullopt;
    }
    if (verb == "outlives") {
      set_outlives();
      return std::nullopt;
    }
    Op op;
    if (verb == "record" || verb == "wait") {
      op.kind = verb == "wait" ? Op::Kind::wait : Op::Kind::record;
      op.event = static_cast<std::uint32_t>(integer(word(), kMaxEvents, "an event"));
      program_.events = std::max(program_.events, op.event + 1);
      const std::string_view next = word();
      op.previous = op.kind == Op::Kind::wait && next == "previous";
      if (!word().empty() || (!next.empty() && !op.previous))
        refuse("something follows the event; write one op a line");
      return op;
    }
    op.pace = verb == "pace";
    if (verb == "compute" || op.pace)
      op.duration = integer(word(), kMaxDuration, "picoseconds");
    else if (!transfer(verb, op))
      collective(verb, op);
    op.label = label();
    return op;
  }

  // Whether the line's op starts together with the one before it.
  bool joins() const { return joins_; }

  [[noreturn]] void refuse(const std::string& what) const {
    Mark at = mark_;
    at.line += number_;
    fail(at, what);
  }

 private:
  std::string_view word() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const std::string_view out = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(out.size());
    return out;
  }

  std::uint64_t integer(std::string_view text, std::uint64_t most, const char* what) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value > most)
      refuse(quote(text) + " stands where " + what + " is expected; write a number up to " +
             std::to_string(most));
    return value;
  }

  void set_workers() {
    if (!program_.streams[stream_].empty()) refuse("workers come before the first op of a stream");
    const std::uint64_t n = integer(word(), kMaxAtOnce, "a number of workers");
    if (n == 0) refuse("a stream needs one worker at least");
    program_.at_once.resize(std::max(program_.at_once.size(), stream_ + 1), 1);
    program_.at_once[stream_] = static_cast<std::uint8_t>(n);
  }

  void set_outlives() {
    if (!program_.streams[stream_].empty())
      refuse("outlives comes before the first op of a stream");
    if (!word().empty()) refuse("something follows outlives; it stands alone");
    program_.outlives.resize(std::max(program_.outlives.size(), stream_ + 1));
    program_.outlives[stream_] = true;
  }

  void group(Op& op) {
    const std::string_view name = word();
    const auto at = std::find(group_names_.begin(), group_names_.end(), name);
    if (at == group_names_.end())
      refuse("there is no group " + quote(name) + "; groups has " + join(group_names_, ", "));
    op.group = static_cast<std::uint16_t>(at - group_names_.begin());
  }

  void type(Op& op) {
    const std::string_view name = word();
    op.floats = name == "float64" || name == "float8";
    if (op.floats) {
      op.dtype = name == "float64" ? DataType::int64 : DataType::uint8;
      return;
    }
    for (const DataType known : {DataType::int32, DataType::float32, DataType::bfloat16,
                                 DataType::int64, DataType::uint8, DataType::float16}) {
      if (name_of(known) != name) continue;
      op.dtype = known;
      return;
    }
    refuse(quote(name) +
           " is no type; write int32, float32, bfloat16, float16, int64, uint8, "
           "float64 or float8");
  }

  // Returns false if the line begins otherwise.
  bool transfer(std::string_view verb, Op& op) {
    const auto* known = std::find_if(std::begin(kTransferVerbs), std::end(kTransferVerbs),
                                     [&](const TransferVerb& v) { return v.name == verb; });
    if (known == std::end(kTransferVerbs)) return false;
    op.kind = known->kind;
    op.within = known->within;
    op.func = Func::send_recv;
    group(op);
    std::string_view offset = word();
    const bool before = offset.starts_with('-');
    if (before || offset.starts_with('+')) offset.remove_prefix(1);
    const auto ranks = static_cast<std::int32_t>(integer(offset, kMostRanks, "an offset"));
    op.peer = before ? -ranks : ranks;
    type(op);
    op.count = integer(word(), kMaxCount, "a count");
    return true;
  }

  void collective(std::string_view verb, Op& op) {
    op.kind = Op::Kind::collective;
    const std::size_t colon = std::min(verb.find(':'), verb.size());
    const std::string_view reduction = verb.substr(colon);
    verb = verb.substr(0, colon);
    bool known = false;
    for (int f = 0; f < kFuncs && !known; ++f) {
      op.func = static_cast<Func>(f);
      known = name_of(op.func) == verb;
    }
    if (!known)
      refuse(quote(verb) + " is no op; write compute, send, recv, record, wait or a collective");
    if (!reduction.empty()) {
      const auto named = reduction_named(reduction.substr(1));
      if (!named || !reduces(op.func))
        refuse(std::string(verb) + std::string(reduction) + " is no op; " +
               (reduces(op.func) ? "reductions are sum, prod, min, max, avg and mulsum"
                                 : std::string(verb) + " reduces nothing"));
      op.reduction = *named;
    }
    group(op);
    type(op);
    std::string_view count = word();
    if (const auto at = count.find('~'); at != count.npos) {
      op.tensor =
          static_cast<std::uint32_t>(integer(count.substr(at + 1), kMaxTensors, "a tensor"));
      count = count.substr(0, at);
      if (op.tensor == 0) refuse("tensors are numbered from 1 on");
      if (!reduces(op.func) && !exchanges_payloads(op.func))
        refuse(std::string(verb) + " sums up nothing, so it names no tensor; leave out ~");
    }
    if (const auto at = count.find('@'); at != count.npos) {
      if (!has_root(op.func) && op.func != Func::send_recv)
        refuse(std::string(verb) + " has no root; leave out @");
      op.peer = static_cast<std::int32_t>(integer(count.substr(at + 1), kMostRanks, "a root"));
      count = count.substr(0, at);
    }
    if (is_ragged(op.func) != count.starts_with('#'))
      refuse(std::string(verb) + (is_ragged(op.func) ? " takes a list of counts, as #0"
                                                     : " takes a count, no list; as 1024"));
    if (is_ragged(op.func))
      op.counts = static_cast<std::uint32_t>(integer(count.substr(1), kMaxLists, "a list"));
    else
      op.count = integer(count, kMaxCount, "a count");
  }

  std::uint32_t label() {
    rest_.remove_prefix(std::min<std::size_t>(1, rest_.size()));
    const auto [at, added] =
        labels_.try_emplace(unescaped(rest_), static_cast<std::uint32_t>(program_.labels.size()));
    if (added) program_.labels.push_back(at->first);
    return at->second;
  }

  const Mark& mark_;
  std::span<const std::string> group_names_;
  Program& program_;
  const std::size_t stream_;
  std::unordered_map<std::string, std::uint32_t> labels_;
  std::string_view rest_;
  bool joins_ = false;
  int number_ = 0;
};

}  // namespace

std::string text_of_ops(const Program& program, std::size_t stream,
                        std::span<const std::string> group_names) {
  std::string text;
  if (workers(program, stream) > 1)
    text += "workers " + std::to_string(workers(program, stream)) + "\n";
  if (outlives(program, stream)) text += "outlives\n";
  const OpList& ops = program.streams[stream];
  for (std::size_t i = 0; i < ops.size(); ++i) {
    text += (ops[i].launch_index > 0 ? "& " : "") + what_of(ops[i], group_names);
    const bool labelled = ops[i].kind != Op::Kind::record && ops[i].kind != Op::Kind::wait;
    if (const std::string label = labelled ? label_of(program, stream, i) : ""; !label.empty())
      text += " " + escaped(label);
    text += '\n';
  }
  return text;
}

void read_ops(std::string_view text, const Mark& mark, std::span<const std::string> group_names,
              Program& program, std::size_t stream, std::vector<GroupedCalls>& launches) {
  Reader reader(mark, group_names, program, stream);
  OpList& ops = program.streams[stream];
  std::vector<Op> together;  // the calls of the launch that may go on
  const auto end_launch = [&] {
    make_launch(together, launches);
    for (const Op& call : together) ops.push_back(call);
    together.clear();
  };
  // The block begins on the line after its key.
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (!text.starts_with("& ")) end_launch();
    const auto op = reader.line(text.substr(0, end), number);
    if (reader.joins() && (!op || !communicates(*op) || together.empty()))
      reader.refuse("& stands before a call that starts together with the call on the line before");
    if (reader.joins() && workers(program, stream) > 1)
      reader.refuse("calls start together on a stream with one worker; leave out & or workers");
    if (together.size() == kMostTogether && reader.joins())
      reader.refuse("at most " + std::to_string(kMostTogether) + " calls start together");
    if (op && communicates(*op))
      together.push_back(*op);
    else if (op)
      ops.push_back(*op);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  end_launch();
}

}  // namespace ghostrank
