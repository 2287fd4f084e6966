// GOAL text (LogGOPSim): sends, receives and computations of every rank, and their dependencies.
//
//   num_ranks 2
//   rank 0 {
//   l1: send 4096b to 1 tag 0 cpu 0 nic 0
//   l2: calc 1500
//   l2 requires l1
//   }
//
// A calc takes nanoseconds on its cpu; the calcs of a cpu take turns. `a irequires b`: a starts
// when b starts, which is when all that b requires has ended. Receives from any rank or with any
// tag are refused, because the text does not name the sender. The cluster, not the text, assigns
// NICs.
#include <cctype>
#include <limits>
#include <optional>

#include "profiles/error.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/goal_rank.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

class GoalTextReader {
 public:
  GoalTextReader(const std::string& path, Trace& trace)
      : path_(path), trace_(trace), text_(read_trace_file(path)) {}

  void run() {
    trace_.format = "goal";
    trace_.unit = "nanoseconds of computation; no clock";
    expect("num_ranks");
    const std::uint64_t ranks = number("the number of ranks", kMostTraceRanks);
    if (ranks == 0) fail("num_ranks is 0");
    trace_.ranks = static_cast<int>(ranks);
    std::vector<bool> seen(ranks);
    for (std::string_view word = next(); !word.empty(); word = next()) {
      if (word != "rank") fail("'rank N {' is expected, found " + quote(word));
      const std::uint64_t rank = number("the rank", ranks - 1);
      if (seen[rank]) fail("rank " + std::to_string(rank) + " for the second time");
      seen[rank] = true;
      read_rank(WorldRank(rank));
    }
    for (std::size_t rank = 0; rank < ranks; ++rank)
      if (!seen[rank]) fail("the file ends without rank " + std::to_string(rank));
    if (nics_) trace_.notes.emplace_back("numbers of NICs are not used: a rank's NIC is its GPU's");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(path_ + ":" + std::to_string(line_) + ":" + std::to_string(column_) + ": " + what);
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  }

  void step() {
    if (text_[at_++] == '\n') {
      ++next_line_;
      line_begin_ = at_;
    }
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const std::string_view rest = std::string_view(text_).substr(at_);
      if (std::isspace(static_cast<unsigned char>(rest[0]))) {
        step();
      } else if (rest.starts_with("//")) {
        while (at_ < text_.size() && text_[at_] != '\n') step();
      } else if (rest.starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string::npos) fail("a comment that does not end");
        while (at_ < end + 2) step();
      } else {
        return;
      }
    }
  }

  // The next word or sign; empty: the end.
  std::string_view next() {
    skip_blanks();
    line_ = next_line_;
    column_ = at_ - line_begin_ + 1;
    const std::size_t from = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == from && at_ < text_.size()) ++at_;
    return std::string_view(text_).substr(from, at_ - from);
  }

  void expect(std::string_view word) {
    const std::string_view found = next();
    if (found != word)
      fail(quote(word) + " is expected, found " + (found.empty() ? "the end" : quote(found)));
  }

  std::uint64_t number_in(std::string_view word, const char* what, std::uint64_t most) const {
    std::uint64_t value = 0;
    bool good = !word.empty();
    for (const char c : word) {
      good = good && c >= '0' && c <= '9' &&
             value <= (std::numeric_limits<std::uint64_t>::max() - 9) / 10;
      if (good) value = 10 * value + (c - '0');
    }
    if (!good || value > most)
      fail(std::string(what) + ": " + quote(word) + " is no integer from 0 to " +
           std::to_string(most));
    return value;
  }
  std::uint64_t number(const char* what, std::uint64_t most) {
    return number_in(next(), what, most);
  }

  void read_rank(WorldRank number) {
    rank_ = &trace_.given.emplace_back();
    rank_->rank = number;
    rank_->file = path_;
    rank_->tracks = {"compute"};
    labels_.clear();
    later_.clear();
    expect("{");
    for (std::string_view word = next(); word != "}"; word = next()) {
      if (word.empty()) fail("the file ends inside rank " + to_string(number));
      if (word == "send" || word == "recv" || word == "calc") {
        operation(word);
        continue;
      }
      const std::string_view sign = next();
      if (sign == ":") {
        const std::uint32_t event = operation(next());
        if (!labels_.emplace(word, event).second)
          fail("label " + quote(word) + " for the second time");
      } else if (sign == "requires" || sign == "irequires") {
        const bool on_start = sign == "irequires";
        const std::uint32_t event = labelled(word);
        later_.push_back({event, labelled(next()), on_start});
        ++trace_.used;
      } else {
        fail("an operation or a dependency is expected, found " + quote(word));
      }
    }
    add_goal_dependencies(*rank_, later_);
  }

  std::uint32_t labelled(std::string_view label) const {
    const auto at = labels_.find(std::string(label));
    if (at == labels_.end())
      fail("label " + quote(label) + " is not defined above in rank " + to_string(rank_->rank));
    return at->second;
  }

  std::uint32_t operation(std::string_view word) {
    TraceEvent event;
    event.position = line_;
    event.name = trace_.name(word);
    if (rank_->events.size() >= kMostTraceEvents) fail("more than 2^27 operations of a rank");
    if (word == "calc") {
      event.kind = TraceEvent::Kind::compute;
      event.duration =
          static_cast<Picoseconds>(number("nanoseconds", 1'000'000'000'000'000)) * kPicosPerNano;
      options(event, true);
    } else if (word == "send" || word == "recv") {
      event.kind = word == "send" ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
      std::string_view bytes = next();
      if (!bytes.ends_with('b')) fail("a size ends in b, as 4096b; found " + quote(bytes));
      bytes.remove_suffix(1);
      event.stated = number_in(bytes, "the size", kMostTraceBytes);
      expect(word == "send" ? "to" : "from");
      const std::string_view peer = next();
      if (peer == "-1")
        fail("a receive from anybody: the text does not say from whom; name the rank");
      event.peer = static_cast<std::int32_t>(number_in(peer, "the peer", trace_.ranks - 1));
      if (event.peer == rank_->rank.value()) fail("a message of a rank to itself");
      options(event, false);
    } else {
      fail("send, recv or calc is expected, found " + quote(word));
    }
    ++trace_.used;
    rank_->events.push_back(event);
    return static_cast<std::uint32_t>(rank_->events.size() - 1);
  }

  // tag N, cpu N, nic N in any order.
  void options(TraceEvent& event, bool computes) {
    for (;;) {
      skip_blanks();
      const std::size_t before = at_;
      const auto where = std::pair(next_line_, line_begin_);
      const std::string_view word = next();
      if (word == "tag") {
        const std::string_view tag = next();
        if (tag == "-1") fail("a receive of any tag: the text does not say of which; name it");
        event.tag = static_cast<std::uint32_t>(number_in(tag, "the tag", 0xffffffff));
      } else if (word == "cpu") {
        const std::uint64_t cpu = number("the cpu", 255);
        if (computes && cpu > 0) event.track = track_named(*rank_, "cpu " + std::to_string(cpu));
      } else if (word == "nic") {
        nics_ |= number("the nic", 255) > 0;
      } else {
        at_ = before;
        std::tie(next_line_, line_begin_) = where;
        return;
      }
    }
  }

  const std::string& path_;
  Trace& trace_;
  const std::string text_;
  std::size_t at_ = 0, line_begin_ = 0;
  std::uint64_t next_line_ = 1;          // line of at_
  std::uint64_t line_ = 1, column_ = 1;  // of the last word
  TraceRank* rank_ = nullptr;
  std::unordered_map<std::string, std::uint32_t> labels_;
  std::vector<GoalDependency> later_;
  bool nics_ = false;
};

}  // namespace

Trace import_goal(const std::vector<std::string>& files, int) {
  if (files.size() != 1) throw Error(files[1] + ": a second GOAL file; one holds all ranks");
  if (trace_head(files.front(), kGoalMark.size()) == kGoalMark)
    return import_goal_binary(files.front());
  Trace trace;
  GoalTextReader(files.front(), trace).run();
  return trace;
}

}  // namespace ghostrank
