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

  // Sizes of the dimensions: as the rows say, or as the number of ranks leaves them.
  void find_sizes() {
    for (const Section& section : sections_)
      for (const auto& [line, row] : section.rows) {
        const std::string size = field(section, row, "comm_group_size");
        const auto ranks = parse_integer(size);
        if (!size.empty() && (!ranks || *ranks < 1 || *ranks > kMostTraceRanks))
          fail(line, "comm_group_size " + quote(size) + " is no number of ranks");
        std::int64_t& known = size_[after_dot(field(section, row, "comm_group"))];
        if (ranks && known != 0 && known != *ranks &&
            after_dot(field(section, row, "comm_group")) != "pp_group")
          fail(line,
               "comm_group_size is " + size + " here and " + std::to_string(known) + " before");
        if (ranks) known = *ranks;
      }
    if (said_ > 0) world_ = said_;
    tp_ = std::max<std::int64_t>(stated("tp_group"), 1);
    ep_ = std::max<std::int64_t>(stated("ep_group"), 1);
    dp_ = std::max<std::int64_t>(stated("dp_group"), 1);
    if (stated("dp_group") == 0 && stated("ep_dp_group") > 0) dp_ = ep_ * stated("ep_dp_group");
    // Logs of single collectives give no sizes: the data-parallel ranks are all that there are.
    const bool unsized = is_named_only("dp_group") && stated("ep_dp_group") == 0;
    if (unsized && world_ > 0 && !size_.contains("pp_group"))
      dp_ = std::max<std::int64_t>(world_ / tp_, 1);
    everybody_ = unsized && world_ == 0 && tp_ == 1;
    if (is_named_only("ep_group")) guess_experts();
    for (const auto& [name, size] : {std::pair("dp", dp_), std::pair("ep", ep_)})
      if (size > kMostTraceRanks / tp_)
        fail(1, "tp " + std::to_string(tp_) + " times " + name + " " + std::to_string(size) +
                    " are more than " + std::to_string(kMostTraceRanks) +
                    " ranks; correct comm_group_size");
    if (world_ > 0 && world_ % (tp_ * dp_) != 0)
      fail(1, std::to_string(world_) + " ranks are no multiple of tp " + std::to_string(tp_) +
                  " times dp " + std::to_string(dp_));
    pp_ = world_ > 0 ? world_ / (tp_ * dp_) : 1;
    if (world_ == 0 && !everybody_) world_ = static_cast<int>(tp_ * dp_);
  }

  // The size that rows give a communicator; 0: none does.
  std::int64_t stated(const std::string& group) const {
    const auto at = size_.find(group);
    return at == size_.end() ? 0 : at->second;
  }
  bool is_named_only(const std::string& group) const {
    return size_.contains(group) && stated(group) == 0;
  }

  // AICB's rows of expert parallelism may lack its size.
  void guess_experts() {
    const std::int64_t copies = std::max<std::int64_t>(stated("ep_dp_group"), 1);
    ep_ = dp_ % copies == 0 ? dp_ / copies : dp_;
    trace_.notes.push_back("comm_group_size of ep_group is given nowhere: " + std::to_string(ep_) +
                           (copies > 1 ? ", which leaves ep_dp_group its size"
                                       : ", all data-parallel ranks, is assumed"));
  }

  // The communicator of `rank` that AICB calls `name`.
  std::uint32_t group_of(const std::string& name, WorldRank rank, std::uint64_t line) {
    if (name == "all" || name.empty()) return kNoIndex;
    if (name == "dp_group" && everybody_) return group_like({"dp", {}}, trace_);
    struct Shape {
      std::string_view name;
      std::int64_t size, stride;
    };
    const Shape shapes[] = {{"tp_group", tp_, 1},
                            {"dp_group", dp_, tp_},
                            {"ep_group", ep_, tp_},
                            {"ep_dp_group", std::max<std::int64_t>(dp_ / ep_, 1), tp_ * ep_},
                            {"ep_tp_group", tp_ * ep_, 1},
                            {"pp_group", pp_, tp_ * dp_},
                            {"embedding_group", std::min<std::int64_t>(pp_, 2),
                             tp_ * dp_ * std::max<std::int64_t>(pp_ - 1, 1)}};
    for (const Shape& shape : shapes) {
      if (shape.name != name) continue;
      TraceGroup group{name.substr(0, name.rfind('_')), {}};
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
    const auto stride = static_cast<int>(tp_ * dp_);
    const bool next = text.ends_with("_next"), previous = text.ends_with("_prev");
    if (!next && !previous)
      fail(line, "additional " + quote(text) + " says neither next nor prev: who is the peer?");
    if (pp_ < 2)
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
  std::map<std::string, std::int64_t> size_;  // of communicators, by AICB's name
  std::int64_t tp_ = 1, dp_ = 1, ep_ = 1, pp_ = 1;
  bool everybody_ = false;  // dp_group is all ranks, however many there are
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
