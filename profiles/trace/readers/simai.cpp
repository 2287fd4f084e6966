// SimAI's workloads, in the text that AICB writes and in astra-sim's older form: one table of
// layers, which every rank plays.
//
//   HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 ... all_gpus: 64 ...
//   92                                                       rows
//   NAME -1 FWD_NS COMM BYTES INPUT_NS COMM BYTES WEIGHT_NS COMM BYTES UPDATE_NS
//
// One pass: the rows forward, each computation followed by its collective, which blocks; then the
// rows in reverse, where collectives of input gradients block and those of weight gradients do not.
// A row at which a recomputation starts first repeats the forwards from the last checkpoint up to
// itself. After a collective its result takes UPDATE_NS to process. An all-gather's bytes are its
// whole output, a reduce-scatter's and an all-to-all's the rank's input.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/input/yaml.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMostRows = 1'000'000;

// Which ranks take part in a pass's collectives that have no suffix.
enum class Who : std::uint8_t { nobody, all, tp, dp };
struct Policy {
  std::string_view name;
  Who forward, input, weight;
  bool only_weights = false;  // a micro-benchmark plays no other collectives
};
constexpr Policy kPolicies[] = {{"MICRO", Who::nobody, Who::nobody, Who::all, true},
                                {"DATA", Who::nobody, Who::nobody, Who::all},
                                {"MODEL", Who::all, Who::all, Who::nobody},
                                {"HYBRID_TRANSFORMER", Who::tp, Who::tp, Who::dp},
                                {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", Who::tp, Who::tp, Who::dp}};

struct Word {
  std::string text;
  std::uint64_t line = 1, column = 1;
};

struct Comm {
  std::string kind;  // "NONE", "ALLREDUCE_EP", ...
  std::uint64_t bytes = 0;
  Word at;
};
struct Pass {
  std::uint64_t compute_ns = 0;
  Comm comm;
};
struct Row {
  std::string name;
  std::uint64_t line = 0;
  std::array<Pass, 3> passes;  // forward, input gradient, weight gradient
  std::uint64_t update_ns = 0;
};

struct Head {
  std::int64_t tp = 1, ep = 1, pp = 1, ga = 1, gpus = 0;
  std::vector<std::int64_t> checkpoints, initiates;
  bool sends = false;  // pp_comm is above 0
};

class SimaiImporter {
 public:
  SimaiImporter(const std::string& path, int ranks, Trace& trace)
      : path_(path), ranks_(ranks), trace_(trace), text_(read_trace_file(path)) {
    split();
  }

  void run() {
    trace_.format = "simai";
    trace_.unit = "nanoseconds of computation; no clock";
    read_head();
    read_rows();
    rank_ = &trace_.given.emplace_back();
    rank_->file = path_;
    rank_->tracks = {"compute", "update"};
    add_groups();
    play();
    trace_.used = rows_.size();
    if (head_.sends) trace_.left_out["pp_comm of the header: no row sends it"] = 1;
    if (head_.pp > 1)
      trace_.notes.push_back("the file describes one stage of " + std::to_string(head_.pp) +
                             "; every stage plays it, at the same time and without sends");
    if (head_.ga > 1)
      trace_.notes.push_back("ga " + std::to_string(head_.ga) +
                             " of the header is not multiplied in: the rows are one pass");
    trace_.notes.emplace_back(
        "one pass is an iteration; it ends when all its collectives have ended");
  }

 private:
  [[noreturn]] void fail(const Word& at, const std::string& what) const {
    throw Error(path_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
                what);
  }

  // Words by line.
  void split() {
    Word word;
    std::uint64_t line = 1, column = 0;
    std::vector<Word> words;
    const auto end_word = [&] {
      if (!word.text.empty()) words.push_back(std::move(word));
      word = {};
    };
    for (const char c : text_ + "\n") {
      ++column;
      if (std::isspace(static_cast<unsigned char>(c))) {
        end_word();
        if (c != '\n') continue;
        if (!words.empty()) lines_.push_back(std::move(words));
        words.clear();
        ++line;
        column = 0;
        continue;
      }
      if (word.text.empty()) word = {"", line, column};
      word.text += c;
    }
  }

  std::uint64_t number(const Word& word, const char* what, std::uint64_t most) const {
    // AICB writes some whole numbers as 50331648.0.
    const auto value = parse_number(word.text);
    if (!value || !(*value >= 0) || *value > static_cast<double>(most))
      fail(word, std::string(what) + ": " + quote(word.text) + " is no number from 0 to " +
                     std::to_string(most));
    const auto integer = parse_integer(word.text);
    return integer ? static_cast<std::uint64_t>(*integer) : static_cast<std::uint64_t>(*value);
  }

  void read_head() {
    if (lines_.empty()) throw Error(path_ + ":1:1: the file is empty");
    const std::vector<Word>& words = lines_.front();
    for (const Policy& policy : kPolicies)
      if (policy.name == words.front().text) policy_ = &policy;
    if (!policy_)
      fail(words.front(), "policy " + quote(words.front().text) +
                              " is not played; MICRO, DATA, MODEL, HYBRID_TRANSFORMER and "
                              "HYBRID_TRANSFORMER_FWD_IN_BCKWD are");
    for (std::size_t i = 1; i < words.size(); ++i) {
      std::string key = words[i].text;
      if (key.ends_with(':')) key.pop_back();
      const auto value = [&](std::uint64_t most) {
        if (i + 1 == words.size()) fail(words[i], "no value behind " + quote(words[i].text));
        return static_cast<std::int64_t>(number(words[++i], key.c_str(), most));
      };
      const std::uint64_t ranks = kMostTraceRanks;
      if (key == "model_parallel_NPU_group")
        head_.tp = value(ranks);
      else if (key == "ep" || key == "expert_parallel_npu_group")
        head_.ep = value(ranks);
      else if (key == "pp")
        head_.pp = value(ranks);
      else if (key == "ga")
        head_.ga = value(1 << 30);
      else if (key == "vpp")
        value(1 << 30);
      else if (key == "all_gpus")
        head_.gpus = value(ranks);
      else if (key == "pp_comm")
        head_.sends = value(std::uint64_t{1} << 62) > 0;
      else if (key == "checkpoints" || key == "checkpoint_initiates") {
        auto& rows = key == "checkpoints" ? head_.checkpoints : head_.initiates;
        for (std::int64_t left = value(kMostRows); left > 0; --left)
          rows.push_back(value(kMostRows));
      } else {
        fail(words[i], "unknown key " + quote(words[i].text) + " in the first line");
      }
    }
    check_head(words.front());
  }

  void check_head(const Word& at) {
    for (std::int64_t* size : {&head_.tp, &head_.ep, &head_.pp, &head_.ga})
      *size = std::max<std::int64_t>(*size, 1);
    if (head_.gpus == 0) head_.gpus = ranks_;
    if (head_.gpus == 0) return;
    const std::int64_t stage = head_.tp * head_.pp;
    if (head_.gpus % stage != 0)
      fail(at, "all_gpus " + std::to_string(head_.gpus) + " is no multiple of tensor parallel " +
                   std::to_string(head_.tp) + " times pp " + std::to_string(head_.pp));
    if (head_.gpus / stage % head_.ep != 0)
      fail(at, "ep " + std::to_string(head_.ep) + " does not divide the " +
                   std::to_string(head_.gpus / stage) + " data-parallel ranks");
  }

  void read_rows() {
    if (lines_.size() < 2) fail(lines_.front().front(), "no second line with the number of rows");
    const std::uint64_t rows = number(lines_[1].front(), "the number of rows", kMostRows);
    if (lines_[1].size() != 1) fail(lines_[1][1], "the second line is the number of rows alone");
    if (rows != lines_.size() - 2)
      fail(lines_[1].front(), "the file says " + std::to_string(rows) + " rows but has " +
                                  std::to_string(lines_.size() - 2) + "; is it cut off?");
    for (std::size_t i = 2; i < lines_.size(); ++i) read_row(lines_[i]);
    for (const std::int64_t row : head_.checkpoints) check_row(row);
    for (const std::int64_t row : head_.initiates) check_row(row);
  }

  void check_row(std::int64_t row) const {
    if (row >= std::ssize(rows_))
      fail(lines_.front().front(), "checkpoint " + std::to_string(row) + " is none of the " +
                                       std::to_string(rows_.size()) + " rows");
  }

  void read_row(const std::vector<Word>& words) {
    if (words.size() != 12)
      fail(words.front(), std::to_string(words.size()) + " fields; a row has 12");
    Row row;
    row.name = words[0].text;
    row.line = words[0].line;
    if (!parse_integer(words[1].text)) fail(words[1], "the second field is an integer, mostly -1");
    for (std::size_t p = 0; p < 3; ++p) {
      row.passes[p].compute_ns = number(words[2 + 3 * p], "nanoseconds", kMostTraceNanos);
      row.passes[p].comm = {words[3 + 3 * p].text,
                            number(words[4 + 3 * p], "bytes", kMostTraceBytes), words[3 + 3 * p]};
      func_of(row.passes[p].comm);
    }
    row.update_ns = number(words[11], "nanoseconds", kMostTraceNanos);
    rows_.push_back(std::move(row));
  }

  // The collective without its suffix; empty: none.
  std::optional<Func> func_of(const Comm& comm) const {
    std::string kind = comm.kind;
    for (const std::string_view suffix : {"_DP_EP", "_EP"})
      if (kind.ends_with(suffix)) {
        kind.resize(kind.size() - suffix.size());
        break;
      }
    if (kind == "NONE") return std::nullopt;
    constexpr std::pair<std::string_view, Func> kKinds[] = {{"ALLREDUCE", Func::all_reduce},
                                                            {"ALLGATHER", Func::all_gather},
                                                            {"REDUCESCATTER", Func::reduce_scatter},
                                                            {"ALLTOALL", Func::all_to_all},
                                                            {"BROADCAST", Func::broadcast}};
    for (const auto& [name, func] : kKinds)
      if (name == kind) return func;
    fail(comm.at, quote(comm.kind) + " is no collective of SimAI");
  }

  // Adds the communicators of rank 0. Data-parallel members are unknown without the number of GPUs.
  void add_groups() {
    trace_.ranks = static_cast<int>(head_.gpus);
    const std::int64_t dp = head_.gpus == 0 ? 0 : head_.gpus / (head_.tp * head_.pp);
    const auto add = [&](const char* name, std::int64_t size, std::int64_t stride) {
      TraceGroup group{name, {}};
      for (std::int64_t i = 0; i < size; ++i) group.members.emplace_back(i * stride);
      trace_.groups.push_back(std::move(group));
    };
    add("tp", head_.tp, 1);
    add("dp", dp, head_.tp);
    add("ep", head_.ep, head_.tp);
    add("dp_ep", dp / head_.ep, head_.tp * head_.ep);
  }

  std::uint32_t group_of(const Comm& comm, std::size_t pass) const {
    constexpr std::uint32_t kTp = 0, kDp = 1, kEp = 2, kDpEp = 3;
    if (comm.kind.ends_with("_DP_EP")) return kDpEp;
    if (comm.kind.ends_with("_EP")) return kEp;
    const Who who = pass == 0 ? policy_->forward : pass == 1 ? policy_->input : policy_->weight;
    if (who == Who::nobody)
      fail(comm.at, quote(comm.kind) + " in a pass in which policy " + std::string(policy_->name) +
                        " communicates nothing");
    if (who == Who::all) return kNoIndex;
    return who == Who::tp ? kTp : kDp;
  }

  void compute(const std::string& name, const Row& row, std::uint64_t nanos, std::uint16_t track,
               std::optional<std::uint32_t>& last) {
    if (nanos == 0) return;
    TraceEvent event;
    event.kind = TraceEvent::Kind::compute;
    event.track = track;
    event.duration = static_cast<Picoseconds>(nanos) * kPicosPerNano;
    event.name = trace_.name(name);
    event.position = row.line;
    last = add(event, last);
  }

  std::uint32_t add(const TraceEvent& event, const std::optional<std::uint32_t>& after) {
    return add_event(*rank_, event, after ? std::vector{*after} : std::vector<std::uint32_t>{});
  }

  // Returns whether there is a collective; `last` becomes its end, after its result is processed.
  bool communicate(const Row& row, std::size_t pass, std::uint16_t track,
                   std::optional<std::uint32_t>& last) {
    const Comm& comm = row.passes[pass].comm;
    const auto func = func_of(comm);
    if (!func) return false;
    if (comm.bytes == 0) {
      ++trace_.left_out["collectives of no bytes"];
      return false;
    }
    TraceEvent event;
    event.kind = TraceEvent::Kind::collective;
    event.func = *func;
    event.stated = comm.bytes;
    event.group = group_of(comm, pass);
    event.name = trace_.name(row.name + kPassNames[pass]);
    event.position = row.line;
    last = add(event, last);
    compute(row.name + " update", row, row.update_ns, track, last);
    return true;
  }

  void forward(const Row& row) {
    compute(row.name + kPassNames[0], row, row.passes[0].compute_ns, 0, last_);
    communicate(row, 0, 0, last_);
  }

  void play() {
    if (policy_->only_weights) {
      // Rows run one after the other; their computations are placeholders.
      for (const Row& row : rows_) {
        for (const std::size_t pass : {0, 1})
          if (func_of(row.passes[pass].comm) && row.passes[pass].comm.bytes > 0)
            ++trace_.left_out["collectives of activations, which MICRO does not play"];
        communicate(row, 2, 0, last_);
      }
      trace_.notes.emplace_back(
          "MICRO: the collectives of the rows one after the other, nothing else");
      return;
    }
    for (const Row& row : rows_) forward(row);
    const auto starts = [&](std::size_t i) {
      return std::find(head_.initiates.begin(), head_.initiates.end(),
                       static_cast<std::int64_t>(i)) != head_.initiates.end();
    };
    for (std::size_t i = rows_.size(); i-- > 0;) {
      if (starts(i)) recompute(i);
      const Row& row = rows_[i];
      compute(row.name + kPassNames[1], row, row.passes[1].compute_ns, 0, last_);
      communicate(row, 1, 0, last_);
      compute(row.name + kPassNames[2], row, row.passes[2].compute_ns, 0, last_);
      std::optional<std::uint32_t> beside = last_;
      communicate(row, 2, 1, beside);
    }
  }

  void recompute(std::size_t until) {
    std::int64_t from = -1;
    for (const std::int64_t row : head_.checkpoints)
      if (row <= static_cast<std::int64_t>(until)) from = std::max(from, row);
    if (from < 0)
      fail(lines_.front().front(), "no checkpoint before row " + std::to_string(until) +
                                       ", at which a recomputation starts");
    for (std::size_t i = from; i < until; ++i) {
      if (rank_->events.size() > kMostTraceEvents / 2)
        fail(lines_.front().front(), "checkpoints that make too much to recompute");
      forward(rows_[i]);
    }
  }

  static constexpr std::array kPassNames{" forward", " input gradient", " weight gradient"};

  const std::string& path_;
  const int ranks_;  // of the job, if the file does not say
  Trace& trace_;
  const std::string text_;
  std::vector<std::vector<Word>> lines_;
  const Policy* policy_ = nullptr;
  Head head_;
  std::vector<Row> rows_;
  TraceRank* rank_ = nullptr;
  std::optional<std::uint32_t> last_;  // event that the next computation comes after
};

}  // namespace

Trace import_simai(const std::vector<std::string>& files, int ranks) {
  if (files.size() != 1)
    throw Error(files[1] + ": a second workload of SimAI; one file describes all ranks");
  Trace trace;
  SimaiImporter(files.front(), ranks, trace).run();
  return trace;
}

}  // namespace ghostrank
