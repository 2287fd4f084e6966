// AICB's CSV logs of calls: the rows of one rank in their order, for all ranks or by stage.
//
//   [rank0 ~ rank127]                              or  [ pp_stage0: [rank0, rank1, ...] ]
//   comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,...
//   CommType.all_reduce,CommGroup.tp_group,8,20971520,forward.MegatronRowLinear,None,None,,...
//
// Rows run one after the other; only isend does not block. Columns are found by name. Ranks are
// numbered as in Megatron, tp-cp-ep-dp-pp. An all-gather's size is its whole output, a
// reduce-scatter's its whole input. A computation lasts its elapsed time (milliseconds).
#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "profiles/error.h"
#include "profiles/input/quantity.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/trace_file.h"

namespace ghostrank {
namespace {

struct CallName {
  std::string_view name;
  TraceEvent::Kind kind;
  Func func;
};
constexpr CallName kCallNames[] = {
    {"all_reduce", TraceEvent::Kind::collective, Func::all_reduce},
    {"broadcast", TraceEvent::Kind::collective, Func::broadcast},
    {"reduce", TraceEvent::Kind::collective, Func::reduce},
    {"all_gather", TraceEvent::Kind::collective, Func::all_gather},
    {"all_gather_into_tensor", TraceEvent::Kind::collective, Func::all_gather},
    {"reduce_scatter", TraceEvent::Kind::collective, Func::reduce_scatter},
    {"reduce_scatter_tensor", TraceEvent::Kind::collective, Func::reduce_scatter},
    {"all_to_all", TraceEvent::Kind::collective, Func::all_to_all},
    {"barrier", TraceEvent::Kind::collective, Func::barrier},
    {"isend", TraceEvent::Kind::send, Func::send_recv},
    {"irecv", TraceEvent::Kind::recv, Func::send_recv},
    {"computation", TraceEvent::Kind::compute, Func::all_reduce},
    {"epoch_end", TraceEvent::Kind::join, Func::all_reduce}};

constexpr std::int64_t kMostRepeats = 1'000'000'000;  // of a row; sums of them fit

// Fields of a line; commas inside quotes do not separate.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else if (c != '\r')
      out.back() += c;
  }
  return out;
}

struct Section {
  std::vector<WorldRank> ranks;                                          // empty: all
  std::vector<std::pair<std::uint64_t, std::vector<std::string>>> rows;  // line, fields
  std::map<std::string, std::size_t> column;
};

class AicbImporter {
 public:
  AicbImporter(const std::string& path, int ranks, Trace& trace)
      : path_(path), world_(ranks), trace_(trace) {}

  void run() {
    read();
    trace_.format = "aicb";
    trace_.unit = "milliseconds of computation; no clock";
    find_sizes();
    for (const Section& section : sections_) play(section);
    trace_.ranks = world_;
    if (epochs_ > 1)
      trace_.notes.push_back("one iteration holds everything up to the last of " +
                             std::to_string(epochs_) + " epoch_end rows, the set-up included");
  }

 private:
  [[noreturn]] void fail(std::uint64_t line, const std::string& what) const {
    throw Error(path_ + ":" + std::to_string(line) + ":1: " + what);
  }

  void read() {
    std::istringstream text(read_trace_file(path_));
    std::uint64_t number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r,") == std::string::npos) continue;
      if (line.front() == '[') {
        sections_.push_back({ranks_of(line, number), {}, {}});
        continue;
      }
      if (sections_.empty()) sections_.emplace_back();
      Section& section = sections_.back();
      std::vector<std::string> fields = fields_of(line);
      if (section.column.empty()) {
        for (std::size_t i = 0; i < fields.size(); ++i)
          if (!section.column.emplace(fields[i], i).second)
            fail(number, "the header has column " + quote(fields[i]) + " twice");
        for (const char* needed : {"comm_type", "comm_group", "msg_size"})
          if (!section.column.contains(needed))
            fail(number, "the header has no column " + std::string(needed));
        continue;
      }
      if (fields.size() != section.column.size())
        fail(number, std::to_string(fields.size()) + " fields under a header of " +
                         std::to_string(section.column.size()));
      section.rows.emplace_back(number, std::move(fields));
    }
    std::erase_if(sections_, [](const Section& section) { return section.rows.empty(); });
    if (sections_.empty()) fail(1, "there are no rows");
  }

  // Numbers after "rank"; "rank0 ~ rank127" is a range.
  std::vector<WorldRank> ranks_of(const std::string& line, std::uint64_t number) {
    std::vector<WorldRank> out;
    for (std::size_t at = 0; (at = line.find("rank", at)) != std::string::npos;) {
      at += 4;
      const std::size_t end = std::min(line.find_first_not_of("0123456789", at), line.size());
      const auto rank = parse_integer(line.substr(at, end - at));
      if (!rank || *rank < 0 || *rank >= kMostTraceRanks) fail(number, "a rank without a number");
      const bool range =
          out.size() == 1 && line.find('~') < at && line.find(',') == std::string::npos;
      const WorldRank last(*rank);
      for (WorldRank r = range ? out.front() + 1 : last; r < last; ++r) out.push_back(r);
      out.push_back(last);
      at = end;
    }
    if (out.empty()) fail(number, "this line names no ranks, as [rank0 ~ rank7] does");
    for (const WorldRank rank : out) said_ = std::max(said_, rank.value() + 1);
    return out;
  }

  static std::string field(const Section& section, const std::vector<std::string>& row,
                           const char* name) {
    const auto at = section.column.find(name);
    if (at == section.column.end() || row[at->second] == "None") return "";
    return row[at->second];
  }

  static std::string after_dot(const std::string& text) { return text.substr(text.find('.') + 1); }

  // Reads the sizes of communicators that rows give, and which ones they name.
  void read_sizes() {
    for (const Section& section : sections_)
      for (const auto& [line, row] : section.rows) {
        const std::string size = field(section, row, "comm_group_size");
        const auto ranks = parse_integer(size);
        if (!size.empty() && (!ranks || *ranks < 1 || *ranks > kMostTraceRanks))
          fail(line, "comm_group_size " + quote(size) + " is no number of ranks");
        const std::string group = after_dot(field(section, row, "comm_group"));
        std::int64_t& known = stated_[group];
        if (ranks && known != 0 && known != *ranks && group != "pp_group")
          fail(line,
               "comm_group_size is " + size + " here and " + std::to_string(known) + " before");
        if (ranks) known = *ranks;
        const std::string call = after_dot(field(section, row, "comm_type"));
        between_stages_ |= group == "pp_group" || group == "embedding_group";
        sends_ |= call == "isend" || call == "irecv";
      }
  }

  // The rule for sizes. Those that rows give hold (but pp_group's: its messages say 1), others
  // follow from
  //   dp = ep x ep_dp,  ep_tp = tp x ep,  ranks = tp x dp x pp.
  // Where they do not, a communicator that no row names has one rank: tp, pp, ep, ep_dp, in this
  // order (ep_dp not where a dp that rows name is open). What then is open is refused, except in a
  // log whose only communicator has no size: that one is all ranks, however many there are.
  void find_sizes() {
    read_sizes();
    if (said_ > 0) world_ = said_;
    if (world_ == 0) world_ = static_cast<int>(stated("all"));
    for (const char* group : kSizedByRows) size_[group] = stated(group);
    size_["ranks"] = world_;
    const std::vector<std::string> unsized = unsized_groups();
    const bool alone = groups_named() == 0 || (groups_named() == 1 && unsized.size() == 1);
    everybody_ = world_ == 0 && alone && !sends_;
    if (everybody_) {
      for (const std::string& group : unsized)
        trace_.notes.push_back("comm_group_size of " + group +
                               " is given nowhere: all ranks, however many, are assumed");
      return;
    }
    follow();
    const bool one_stage = (!between_stages_ && !sends_) || (world_ == 0 && stated("pp_group") > 0);
    const bool open_experts = stated_.contains("ep_group") || stated_.contains("ep_tp_group");
    assume_one("tp_group", !stated_.contains("tp_group"));
    assume_one("pp_group", one_stage);
    assume_one("ep_group", !open_experts);
    assume_one("ep_dp_group", !stated_.contains("ep_dp_group") &&
                                  !(stated_.contains("dp_group") && size_["dp_group"] == 0));
    for (const auto& [name, size] : size_)
      if (size == 0) refuse_open();
    if (world_ == 0)
      trace_.notes.push_back("of how many ranks the job was is given nowhere: " + label("stage") +
                             " is assumed");
    world_ = static_cast<int>(size_["ranks"]);
    for (const std::string& group : unsized) note_size(group);
  }

  struct Product {
    const char *whole, *part, *other;
  };
  static constexpr Product kProducts[] = {{"dp_group", "ep_group", "ep_dp_group"},
                                          {"stage", "tp_group", "dp_group"},
                                          {"ep_tp_group", "tp_group", "ep_group"},
                                          {"ranks", "stage", "pp_group"}};
  static constexpr const char* kSizedByRows[] = {"tp_group", "dp_group", "ep_group", "ep_dp_group",
                                                 "ep_tp_group"};

  // Gives every size that follows from kProducts and the known ones.
  void follow() {
    for (bool more = true; more;) {
      more = false;
      for (const Product& of : kProducts) {
        const std::int64_t part = size_[of.part], other = size_[of.other];
        if (size_[of.whole] != 0 || part == 0 || other == 0) continue;
        if (of.whole != std::string_view("dp_group") && part > kMostTraceRanks / other)
          fail(1, label(of.part) + " times " + label(of.other) + " are more than " +
                      std::to_string(kMostTraceRanks) + " ranks; correct comm_group_size");
        size_[of.whole] = part * other;
        more = true;
      }
      for (const Product& of : kProducts) {
        const std::int64_t whole = size_[of.whole];
        std::int64_t &part = size_[of.part], &other = size_[of.other];
        if (whole == 0 || (part == 0 && other == 0)) continue;
        if (part != 0 && other != 0 && whole % part == 0 && whole / part != other)
          fail(1, label(of.whole) + " is not " + label(of.part) + " times " + label(of.other) +
                      "; correct comm_group_size");
        for (std::int64_t* open : {&other, &part}) {
          const bool is_other = open == &other;
          const std::int64_t known = is_other ? part : other;
          if (known == 0) continue;
          if (whole % known != 0)
            fail(1, label(of.whole) + " is no multiple of " + label(is_other ? of.part : of.other) +
                        "; correct comm_group_size or the number of ranks");
          more |= *open == 0;
          *open = whole / known;
        }
      }
    }
  }

  void assume_one(const char* group, bool assumed) {
    if (!assumed || size_[group] != 0) return;
    size_[group] = 1;
    follow();
  }

  // "dp 8", "tp 2 times dp 4", or "the number of ranks, 8,".
  std::string label(const std::string& name) {
    if (name == "stage" && size_["tp_group"] != 0 && size_["dp_group"] != 0)
      return label("tp_group") + " times " + label("dp_group");
    const std::string size = std::to_string(size_[name]);
    if (name == "stage" || name == "ranks") return "the number of ranks, " + size + ",";
    return name.substr(0, name.rfind('_')) + " " + size;
  }

  // The size that rows give a communicator; 0: none does.
  std::int64_t stated(const std::string& group) const {
    const auto at = stated_.find(group);
    return at == stated_.end() ? 0 : at->second;
  }
  // Communicators that rows name but give no size.
  std::vector<std::string> unsized_groups() const {
    std::vector<std::string> out;
    for (const auto& [group, size] : stated_)
      if (group.ends_with("_group") && group != "embedding_group" && size == 0)
        out.push_back(group);
    return out;
  }
  std::ptrdiff_t groups_named() const {
    return std::ranges::count_if(stated_,
                                 [](const auto& of) { return of.first.ends_with("_group"); });
  }

  [[noreturn]] void refuse_open() {
    std::string open;
    for (const char* group : kSizedByRows)
      if (stated_.contains(group) && size_[group] == 0)
        open += (open.empty() ? "" : " and ") + std::string(group);
    if (open.empty())
      fail(1,
           "the number of stages does not follow; say of how many ranks the job was, as in "
           "--ranks 8");
    fail(1, "comm_group_size of " + open + " is given nowhere and does not follow from others; " +
                (world_ == 0 ? "say of how many ranks the job was, as in --ranks 8, or " : "") +
                "fill in that column");
  }

  void note_size(const std::string& group) {
    const std::int64_t size = size_[group];
    const char* why = size == world_ ? ", all ranks,"
                      : group == "ep_group" && size == size_["dp_group"]
                          ? ", all data-parallel ranks,"
                          : ", which other sizes leave,";
    trace_.notes.push_back("comm_group_size of " + group +
                           " is given nowhere: " + std::to_string(size) + why + " is assumed");
  }

  // The communicator of `rank` that AICB calls `name`.
  std::uint32_t group_of(const std::string& name, WorldRank rank, std::uint64_t line) {
    if (name == "all" || name.empty()) return kNoIndex;
    struct Shape {
      std::string_view name;
      std::int64_t size, stride;
    };
    const std::int64_t tp = size_["tp_group"], stage = size_["stage"], pp = size_["pp_group"];
    const Shape shapes[] = {{"tp_group", tp, 1},
                            {"dp_group", size_["dp_group"], tp},
                            {"ep_group", size_["ep_group"], tp},
                            {"ep_dp_group", size_["ep_dp_group"], size_["ep_tp_group"]},
                            {"ep_tp_group", size_["ep_tp_group"], 1},
                            {"pp_group", pp, stage},
                            {"embedding_group", std::min<std::int64_t>(pp, 2),
                             stage * std::max<std::int64_t>(pp - 1, 1)}};
    for (const Shape& shape : shapes) {
      if (shape.name != name) continue;
      TraceGroup group{name.substr(0, name.rfind('_')), {}};
      if (everybody_) return group_like(group, trace_);
      const std::int64_t first =
          rank.value() - rank.value() / shape.stride % shape.size * shape.stride;
      for (std::int64_t i = 0; i < shape.size; ++i)
        group.members.emplace_back(first + i * shape.stride);
      return group_like(group, trace_);
    }
    fail(line, "there is no communicator " + quote(name) + " in AICB");
  }

  void play(const Section& section) {
    TraceRank& rank = trace_.given.emplace_back();
    rank.rank = section.ranks.empty() ? WorldRank(0) : section.ranks.front();
    if (!section.ranks.empty()) rank.also.assign(section.ranks.begin() + 1, section.ranks.end());
    rank.file = path_;
    rank.tracks = {"compute"};
    std::vector<std::uint32_t> after;
    for (const auto& [line, row] : section.rows) {
      const std::string name = after_dot(field(section, row, "comm_type"));
      const CallName* call = nullptr;
      for (const CallName& one : kCallNames)
        if (one.name == name) call = &one;
      if (!call) fail(line, quote(field(section, row, "comm_type")) + " is no call of AICB");
      ++trace_.used;
      count_repeats(section, row, line);
      TraceEvent event;
      event.kind = call->kind;
      event.func = call->func;
      event.position = line;
      const std::string stage = field(section, row, "stage");
      event.name = trace_.name(stage.empty() ? name : stage);
      if (call->kind == TraceEvent::Kind::join) {
        epochs_ += &section == &sections_.front();
        continue;
      }
      if (call->kind == TraceEvent::Kind::compute) {
        if (!take_time(section, row, line, event)) continue;
      } else {
        take_size(section, row, line, event);
        if (call->kind == TraceEvent::Kind::collective)
          event.group = group_of(after_dot(field(section, row, "comm_group")), rank.rank, line);
        else
          event.peer = peer_of(field(section, row, "additional"), rank.rank, line);
      }
      const std::uint32_t at = add_event(rank, event, after);
      if (call->kind != TraceEvent::Kind::send) after = {at};
    }
  }

  void count_repeats(const Section& section, const std::vector<std::string>& row,
                     std::uint64_t line) {
    const std::string text = field(section, row, "count");
    const auto count = text.empty() ? std::optional<std::int64_t>(1) : parse_integer(text);
    if (!count || *count < 0) fail(line, "count " + quote(text) + " is no number of times");
    if (*count > kMostRepeats) fail(line, "count " + text + " is more than 10^9 times");
    if (*count > 1)
      trace_.left_out["repeats of rows (count): a row is played once"] +=
          static_cast<std::uint64_t>(*count - 1);
  }

  // Returns false if the row has no time: then there is nothing to play.
  bool take_time(const Section& section, const std::vector<std::string>& row, std::uint64_t line,
                 TraceEvent& event) {
    const std::string text = field(section, row, "_elapsed_time");
    const auto millis = parse_number(text);
    if (text.empty()) {
      --trace_.used;
      ++trace_.left_out["computations without an elapsed time"];
      return false;
    }
    if (!millis || *millis < 0 || *millis > 1e9)
      fail(line, "_elapsed_time " + quote(text) + " is no number of milliseconds");
    event.duration = static_cast<Picoseconds>(*millis * static_cast<double>(kPicosPerMilli));
    return true;
  }

  void take_size(const Section& section, const std::vector<std::string>& row, std::uint64_t line,
                 TraceEvent& event) {
    const std::string text = field(section, row, "msg_size");
    const auto bytes = parse_number(text);
    if (!bytes || *bytes < 0 || *bytes > static_cast<double>(kMostTraceBytes))
      fail(line, "msg_size " + quote(text) + " is no number of bytes up to 2^44");
    event.stated = static_cast<std::uint64_t>(*bytes);
    if (event.func == Func::broadcast || event.func == Func::reduce) event.peer = 0;
  }

  std::int32_t peer_of(const std::string& text, WorldRank rank, std::uint64_t line) const {
    const auto stride = static_cast<int>(size_.at("stage"));
    const bool next = text.ends_with("_next"), previous = text.ends_with("_prev");
    if (!next && !previous)
      fail(line, "additional " + quote(text) + " says neither next nor prev: who is the peer?");
    if (size_.at("pp_group") < 2)
      fail(line,
           "a message between stages, but the ranks leave one stage only; say of how "
           "many ranks the job was");
    return (rank.value() + (next ? stride : world_ - stride)) % world_;
  }

  const std::string& path_;
  int world_;  // ranks; 0: not known
  int said_ = 0;
  Trace& trace_;
  std::vector<Section> sections_;
  std::map<std::string, std::int64_t> stated_;   // by AICB's name of a communicator; 0: not given
  std::map<std::string, std::int64_t> size_;     // as found, also of "stage" and "ranks"; 0: open
  bool between_stages_ = false, sends_ = false;  // some row is of several stages, is a message
  bool everybody_ = false;  // the only communicator is all ranks, however many there are
  std::size_t epochs_ = 0;
};

}  // namespace

Trace import_aicb(const std::vector<std::string>& files, int ranks) {
  if (files.size() != 1)
    throw Error(files[1] + ": a second log of AICB; one file describes all ranks");
  Trace trace;
  AicbImporter(files.front(), ranks, trace).run();
  return trace;
}

}  // namespace ghostrank
