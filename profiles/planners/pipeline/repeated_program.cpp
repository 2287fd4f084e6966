#include "profiles/planners/pipeline/repeated_program.h"

#include <charconv>
#include <limits>
#include <stdexcept>
#include <unordered_map>

#include "profiles/error.h"

namespace ghostrank {
namespace {

// Streams count their ops in 32 bits.
constexpr std::size_t kMostOps = std::numeric_limits<std::uint32_t>::max();

void check_length(const JobSpec& spec, const Pipeline& pipeline, const Program& program) {
  for (std::size_t s = 0; s < program.streams.size(); ++s)
    if (program.streams[s].size() > kMostOps)
      throw Error(spec.source_of("parallel.global_batch") + ": parallel.global_batch: a plan of " +
                  std::to_string(pipeline.micro_batches) + " micro-batches per replica has " +
                  std::to_string(program.streams[s].size()) + " ops on stream " +
                  program.stream_names[s] + ", and at most " + std::to_string(kMostOps) +
                  " are played; give it in samples, not in tokens, or raise parallel.micro_batch");
}

bool is_event(const Op& op) { return op.kind == Op::Kind::record || op.kind == Op::Kind::wait; }

// A label without the number of its micro-batch, and the number.
struct Label {
  std::string_view before, after;
  std::int64_t number = 0;
  std::size_t numeral = 0;  // where it begins; 0: there is none

  bool alike(const Label& other) const {
    return numeral == other.numeral && before == other.before && after == other.after;
  }
};

std::vector<Label> labels_of(const Program& program) {
  std::vector<Label> out;
  for (std::size_t i = 0; i < program.labels.size(); ++i) {
    const std::string_view text = program.labels[i];
    Label label{text, {}, 0, i < program.numerals.size() ? program.numerals[i] : std::size_t{0}};
    if (label.numeral > 0) {
      const auto [end, error] =
          std::from_chars(&text[label.numeral], text.data() + text.size(), label.number);
      label.before = text.substr(0, label.numeral);
      label.after = text.substr(end - text.data());
    }
    out.push_back(label);
  }
  return out;
}

// A program whose streams are compared with those of another.
struct Short {
  explicit Short(const Program& p) : program(p), labels(labels_of(p)) {}

  std::size_t size(std::size_t s) const { return program.streams[s].size(); }
  const Op& op(std::size_t s, std::size_t i) const { return program.streams[s][i]; }
  const Label& label(std::size_t s, std::size_t i) const {
    return is_event(op(s, i)) ? none : labels[op(s, i).label];
  }
  std::int64_t number(std::size_t s, std::size_t i) const { return label(s, i).number; }

  const Program& program;
  const std::vector<Label> labels;
  const Label none{};
};

// Whether two ops differ in the number of their micro-batch at most.
bool alike(const Short& a, std::size_t i, const Short& b, std::size_t j, std::size_t s) {
  Op one = a.op(s, i);
  one.label = b.op(s, j).label;
  return one == b.op(s, j) && a.label(s, i).alike(b.label(s, j));
}

class Prolonged {
 public:
  Prolonged(const Program& a, const Program& b, const Program& c, std::uint64_t periods)
      : a_(a), b_(b), c_(c), periods_(periods) {}

  std::optional<Program> write() {
    const Program& a = a_.program;
    for (const Program* other : {&b_.program, &c_.program})
      if (a.stream_names != other->stream_names || a.events != other->events) return std::nullopt;
    out_.stream_names = a.stream_names;
    out_.events = a.events;
    out_.at_once = a.at_once;
    out_.outlives = a.outlives;
    for (std::size_t s = 0; s < a.streams.size(); ++s)
      if (!write(s)) return std::nullopt;
    return std::move(out_);
  }

 private:
  // Writes a stream: the ops at its beginning that all three programs have, the body that each
  // repeats once more than the one before, and the ops at its end that all have. False: the streams
  // differ otherwise.
  bool write(std::size_t s) {
    const std::size_t size = a_.size(s), body = b_.size(s) - size;
    if (b_.size(s) < size || c_.size(s) != size + 2 * body) return false;
    OpList& out = out_.streams.emplace_back();
    std::size_t begin = 0;
    for (; begin < size && stays(s, begin, 0); ++begin)
      append(s, a_, begin, b_.number(s, begin) - a_.number(s, begin), periods_);
    for (std::size_t i = begin; i < begin + body; ++i) {
      if (!repeats(s, i, i + body)) return false;
      append(s, b_, i, c_.number(s, i) - b_.number(s, i), periods_ - 1);
    }
    if (body > 0) out.repeat(begin, periods_);
    for (std::size_t i = begin; i < size; ++i) {
      if (!stays(s, i, body)) return false;
      append(s, a_, i, b_.number(s, i + body) - a_.number(s, i), periods_);
    }
    out.shrink_to_fit();
    return true;
  }

  // Whether an op is in all three, `later` positions later in each, and its number moves evenly.
  bool stays(std::size_t s, std::size_t i, std::size_t later) const {
    const std::size_t b = i + later, c = b + later;
    return alike(a_, i, b_, b, s) && alike(b_, b, c_, c, s) &&
           b_.number(s, b) - a_.number(s, i) == c_.number(s, c) - b_.number(s, b);
  }

  // Whether an op of the body is in both repetitions, and its number moves as all do.
  bool repeats(std::size_t s, std::size_t once, std::size_t again) {
    if (!alike(b_, once, c_, once, s) || !alike(c_, once, c_, again, s)) return false;
    if (c_.label(s, once).numeral == 0) return true;
    const std::int64_t step = c_.number(s, again) - c_.number(s, once);
    if (out_.micro_batches == 0) out_.micro_batches = static_cast<std::uint32_t>(step);
    return step == out_.micro_batches;
  }

  // Appends an op whose number moves by `by` in each of `periods`.
  void append(std::size_t s, const Short& from, std::size_t i, std::int64_t by,
              std::int64_t periods) {
    Op op = from.op(s, i);
    if (!is_event(op)) op.label = label(from.label(s, i), from.number(s, i) + by * periods);
    out_.streams[s].push_back(op);
  }

  std::uint32_t label(const Label& label, std::int64_t number) {
    std::string text(label.before);
    if (label.numeral > 0) text += std::to_string(number) + std::string(label.after);
    const auto [at, added] =
        label_of_.try_emplace(text, static_cast<std::uint32_t>(out_.labels.size()));
    if (added) {
      out_.labels.push_back(text);
      out_.numerals.push_back(static_cast<std::uint8_t>(label.numeral));
    }
    return at->second;
  }

  const Short a_, b_, c_;
  const std::int64_t periods_;
  Program out_;
  std::unordered_map<std::string, std::uint32_t> label_of_;
};

}  // namespace

std::optional<Program> prolonged(const Program& one, const Program& two, const Program& three,
                                 std::uint64_t periods) {
  return Prolonged(one, two, three, periods).write();
}

std::vector<Program> repeated_programs(
    const JobSpec& spec, const Pipeline& pipeline, std::size_t roles,
    const std::function<Program(std::size_t role, int micro_batches)>& write) {
  const int total = pipeline.micro_batches, period = pipeline_period(pipeline);
  const int first = shortened(pipeline, kRounds * pipeline.stages).micro_batches;
  const std::uint64_t periods = (total - first) / period;
  std::vector<Program> out;
  for (std::size_t role = 0; role < roles; ++role) {
    if (total <= kRounds * (first + 2 * period)) {
      out.push_back(write(role, total));
      continue;
    }
    auto program = prolonged(write(role, first), write(role, first + period),
                             write(role, first + 2 * period), periods);
    if (!program)
      throw std::logic_error("the micro-batches of schedule " + pipeline.schedule +
                             " do not repeat");
    check_length(spec, pipeline, *program);
    out.push_back(std::move(*program));
  }
  return out;
}

}  // namespace ghostrank
