#include "tools/nccl/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "collectives/nccl/environment.h"
#include "profiles/error.h"
#include "profiles/input/keys.h"
#include "profiles/trace/readers/nccl/log_lines.h"

namespace ghostrank {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::string_view kVersion = "NCCL version ";
constexpr std::size_t kMostWords = 1 << 18;
// NCCL cuts a line of trees here, perhaps within a number.
constexpr std::size_t kCutLine = 1000;

constexpr std::array<std::pair<std::string_view, Func>, 6> kCalls{
    {{"AllReduce:", Func::all_reduce},
     {"AllGather:", Func::all_gather},
     {"ReduceScatter:", Func::reduce_scatter},
     {"Broadcast:", Func::broadcast},
     {"Bcast:", Func::broadcast},
     {"Reduce:", Func::reduce}}};

Words words_of(std::string_view text) {
  Words out;
  constexpr std::string_view kBlank = " \t\r";
  for (std::size_t at = 0; out.size() < kMostWords &&
                           (at = text.find_first_not_of(kBlank, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlank, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

// The word behind `key`; empty: there is none.
std::string_view after(const Words& words, std::string_view key) {
  const auto at = std::find(words.begin(), words.end(), key);
  return at == words.end() || at + 1 == words.end() ? std::string_view{} : *(at + 1);
}

// A number from `least` to `most`. A comma may follow it.
std::optional<std::int64_t> number_in(std::string_view text, std::int64_t least,
                                      std::int64_t most) {
  if (text.ends_with(',')) text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    return std::nullopt;
  return value;
}

// Whether a record that another one follows on its line is whole: only some say where they end.
bool is_whole(std::string_view text, const Words& words) {
  if (text.find("Init START") != text.npos || text.find("Init COMPLETE") != text.npos) return true;
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return (word.starts_with("[nranks=") && word.ends_with(']')) ||
           (word.starts_with("channel{") && word.ends_with('}'));
  });
}

class Reader {
 public:
  Reader(const std::string& file, NcclLog& log) : file_(file), log_(log) {
    for (std::size_t i = 0; i < log.comms.size(); ++i) by_name_[log.comms[i].name] = i;
  }

  void finish() {
    for (auto& [thread, pending] : pending_) end(pending);
  }

  void take(std::string_view line, std::uint64_t number) {
    line_ = number;
    const std::size_t version = line.find(kVersion);
    if (version != std::string_view::npos) {
      const std::string_view rest = line.substr(version + kVersion.size());
      log_.version = std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
    }
    const std::vector<NcclLogRecord>& records = lines_.records_in(line);
    if (records.empty() && version == std::string_view::npos)
      leave_out("lines that are not NCCL's");
    for (const NcclLogRecord& record : records) take_record(record);
  }

 private:
  struct Rank {
    std::size_t comm = 0;
    int rank = 0;
  };
  // What a thread has called since NCCL last told all its choices, and which calls have theirs.
  struct Pending {
    NcclLogGroup group;
    std::vector<bool> told;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(file_ + ":" + std::to_string(line_) + ":1: " + what);
  }
  void leave_out(const char* why) { ++log_.left_out[why]; }

  int number(const Words& words, std::string_view key, std::int64_t least, std::int64_t most) {
    const auto value = number_in(after(words, key), least, most);
    if (!value)
      fail(std::string(key) + " is no number from " + std::to_string(least) + " to " +
           std::to_string(most));
    return static_cast<int>(*value);
  }

  void take_record(const NcclLogRecord& record) {
    if (!record.named) return leave_out("lines without host:pid:tid");
    if (record.body.find(kVersion) != std::string_view::npos) return;
    host_ = record.host;
    process_ = host_ + ":" + std::to_string(record.pid);
    thread_ = process_ + ":" + std::to_string(record.tid);
    const Words words = words_of(record.body);
    if (record.followed && !is_whole(record.body, words))
      return leave_out("lines of NCCL that another one may have cut off");
    if (words.empty() ||
        !(take_variable(words) || take_init(record.body, words) || take_plan(words)))
      leave_out("lines of NCCL that say nothing of this");
  }

  // NCCL_MAX_NCHANNELS set by environment to 4.
  bool take_variable(const Words& words) {
    static const std::vector<std::string> kFollowed = nccl_variables();
    if (words.size() != 6 || words[1] != "set" || words[3] != "environment" ||
        std::find(kFollowed.begin(), kFollowed.end(), words[0]) == kFollowed.end())
      return false;
    std::string_view value = words[5];
    if (value.ends_with('.')) value.remove_suffix(1);
    const auto [at, fresh] = log_.environment.try_emplace(std::string(words[0]), value);
    if (!fresh && at->second != value)
      fail(at->first + " is " + quote(value) + " here and " + quote(at->second) +
           " before; give logs of one environment");
    return true;
  }

  // ---- Communicators ----

  bool take_init(std::string_view text, const Words& words) {
    if (text.find("Init START") != text.npos || text.find("Init COMPLETE") != text.npos) {
      begin(words);
      return true;
    }
    if (words[0] == "comm" && !after(words, "nNodes").empty()) return take_size(words);
    const auto own = of_thread_.find(thread_);
    if (own == of_thread_.end()) return false;
    const Rank me = own->second;
    NcclLogComm& comm = log_.comms[me.comm];
    if (words[0] == "Pattern") return take_graph(words, comm);
    if (words[0] == "Channel" && words.size() > 4 && words[4] == "->")
      return false;  // a connection
    if (words[0] == "Channel" && words.size() > 3 && words[2] == ":") return take_ring(words, comm);
    if (words[0] == "Ring" && words.size() >= 8 && words[2] == ":" && words[4] == "->")
      return take_edges(words, comm, me.rank);
    if (words[0] == "Trees") return take_trees(text, words, comm, me.rank);
    if (text.find(" coll channels, ") != text.npos) return take_channels(words, comm);
    return false;
  }

  void begin(const Words& words) {
    const int ranks = number(words, "nranks", 1, kMostLogRanks);
    const int rank = number(words, "rank", 0, ranks - 1);
    const std::string address = process_ + " " + std::string(after(words, "comm"));
    std::string name(after(words, "commId"));
    if (name.empty()) {  // split from another one, in the same way on all its ranks
      const auto parent = at_.find(process_ + " " + std::string(after(words, "parent")));
      name = (parent == at_.end() ? address : log_.comms[parent->second.comm].name) + " split " +
             std::string(after(words, "splitCount")) + " color " +
             std::string(after(words, "color"));
    }
    const auto [at, fresh] = by_name_.try_emplace(name, log_.comms.size());
    if (fresh) {
      log_.comms.emplace_back().name = name;
      log_.comms.back().ranks = ranks;
    }
    NcclLogComm& comm = log_.comms[at->second];
    if (comm.ranks != ranks)
      fail("communicator " + name + " has " + std::to_string(ranks) + " ranks here and " +
           std::to_string(comm.ranks) + " before");
    const std::string_view key = after(words, "nvmlDev").empty() ? "cudaDev" : "nvmlDev";
    const auto gpu = number_in(after(words, key), 0, 1 << 10);
    comm.members[rank] = {host_, gpu ? static_cast<int>(*gpu) : -1};
    at_[address] = of_thread_[thread_] = {at->second, rank};
  }

  bool take_size(const Words& words) {
    const auto known = at_.find(process_ + " " + std::string(words[1]));
    if (known == at_.end()) return false;
    NcclLogComm& comm = log_.comms[known->second.comm];
    comm.nodes = number(words, "nNodes", 1, comm.ranks);
    comm.ranks_per_node = std::max(comm.ranks_per_node, number(words, "localRanks", 1, comm.ranks));
    of_thread_[thread_] = known->second;
    return true;
  }

  bool take_graph(const Words& words, NcclLogComm& comm) {
    const std::string bw(after(words, "bw"));
    const std::size_t slash = bw.find('/');
    double inside = 0, between = 0;
    if (slash == std::string::npos ||
        std::from_chars(bw.data(), bw.data() + slash, inside).ec != std::errc{} ||
        std::from_chars(bw.data() + slash + 1, bw.data() + bw.size(), between).ec != std::errc{})
      fail("bw is no pair of numbers");
    comm.graphs[number(words, "Pattern", 0, 100)] = {
        number(words, "nChannels", 0, kMostLogChannels), inside, between};
    return true;
  }

  // Channel 03/16 : the ranks in the order of the ring; "..." where NCCL has cut the line.
  bool take_ring(const Words& words, NcclLogComm& comm) {
    const std::size_t slash = words[1].find('/');
    const auto channel = number_in(words[1].substr(0, slash), 0, kMostLogChannels - 1);
    if (slash == std::string_view::npos || !channel) return false;
    std::vector<int> order;
    for (std::size_t i = 3; i < words.size(); ++i) {
      const auto rank = number_in(words[i], 0, comm.ranks - 1);
      if (!rank && words[i].ends_with("...")) break;
      if (!rank) fail(quote(words[i]) + " is no rank of " + std::to_string(comm.ranks));
      order.push_back(static_cast<int>(*rank));
    }
    const bool whole = std::ssize(order) == comm.ranks;
    for (std::size_t i = 0; i + 1 < order.size() || (whole && i < order.size()); ++i) {
      const int next = order[(i + 1) % order.size()];
      comm.rings[{static_cast<int>(*channel), order[i]}].next = next;
      comm.rings[{static_cast<int>(*channel), next}].prev = order[i];
    }
    return true;
  }

  bool take_edges(const Words& words, NcclLogComm& comm, int rank) {
    const auto channel = number_in(words[1], 0, kMostLogChannels - 1);
    const auto prev = number_in(words[3], 0, comm.ranks - 1);
    const auto next = number_in(words[7], 0, comm.ranks - 1);
    if (!channel || !prev || !next) fail("this is no ring: previous -> rank -> next");
    comm.rings[{static_cast<int>(*channel), rank}] = {static_cast<int>(*prev),
                                                      static_cast<int>(*next)};
    return true;
  }

  // [channel] down/down/down->rank->up
  bool take_trees(std::string_view text, const Words& words, NcclLogComm& comm, int rank) {
    const bool cut = text.size() >= kCutLine;
    if (!cut && words.size() % 2 == 0) fail("this is no list of trees: [channel] down->rank->up");
    const std::size_t pairs = (words.size() - 1) / 2;
    for (std::size_t i = 1; i < 2 * (pairs - (cut && pairs > 0 ? 1 : 0)); i += 2) {
      const std::string_view channel = words[i], links = words[i + 1];
      const std::size_t one = links.find("->"), two = links.find("->", one + 1);
      const auto c = channel.size() < 3 ? std::nullopt
                                        : number_in(channel.substr(1, channel.size() - 2), 0,
                                                    kMostLogChannels - 1);
      if (!c || two == std::string_view::npos) fail("this is no tree: [channel] down->rank->up");
      NcclLogComm::Tree tree;
      const auto up = number_in(links.substr(two + 2), -1, comm.ranks - 1);
      if (!up) fail("a tree's parent is no rank");
      tree.up = static_cast<int>(*up);
      for (std::string_view downs = links.substr(0, one); !downs.empty();) {
        const std::size_t slash = std::min(downs.find('/'), downs.size());
        const auto down = number_in(downs.substr(0, slash), -1, comm.ranks - 1);
        if (!down) fail("a tree's child is no rank");
        if (*down >= 0) tree.down.push_back(static_cast<int>(*down));
        downs.remove_prefix(std::min(slash + 1, downs.size()));
      }
      std::sort(tree.down.begin(), tree.down.end());
      comm.trees[{static_cast<int>(*c), rank}] = std::move(tree);
    }
    return true;
  }

  // 16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 4 p2p channels per
  // peer
  bool take_channels(const Words& words, NcclLogComm& comm) {
    const auto before = [&](std::size_t i) {
      const auto value = number_in(words[i - 1], 0, 1 << 10);
      return value ? static_cast<int>(*value) : -1;
    };
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
      if (words[i] == "coll") comm.channels = before(i);
      if (words[i] == "nvls") comm.nvls_channels = before(i);
      if (words[i] == "p2p")
        (words[i + 1] == "channels" ? comm.per_peer : comm.p2p_channels) = before(i);
    }
    return true;
  }

  // ---- Calls ----

  bool take_plan(const Words& words) {
    const auto* known = std::find_if(kCalls.begin(), kCalls.end(),
                                     [&](const auto& call) { return call.first == words[0]; });
    if (known == kCalls.end()) return false;
    return after(words, "opCount").empty() ? take_choice(words, known->second)
                                           : take_call(words, known->second);
  }

  bool take_call(const Words& words, Func func) {
    const auto membership = at_.find(process_ + " " + std::string(after(words, "comm")));
    if (membership == at_.end() || membership->second.rank != 0) return false;
    const int ranks = log_.comms[membership->second.comm].ranks;
    Pending& pending = pending_[thread_];
    if (!pending.group.choices.empty()) end(pending);
    NcclLogCall call;
    call.comm = membership->second.comm;
    call.func = func;
    const auto count = number_in(after(words, "count"), 0, std::int64_t{1} << 44);
    if (!count) fail("count is no number");
    if (*count == 0 || ranks == 1) return true;  // NCCL plans nothing
    call.count = static_cast<std::uint64_t>(*count);
    call.type = number(words, "datatype", 0, 11);
    call.op = number(words, "op", 0, INT32_MAX);
    call.root = number(words, "root", 0, ranks - 1);
    pending.group.calls.push_back(call);
    pending.told.push_back(false);
    return true;
  }

  void end(Pending& pending) {
    if (!pending.group.choices.empty()) ++log_.groups[std::move(pending.group)];
    pending = {};
  }

  // AllReduce: 16777216 Bytes -> Algo TREE proto LL128 channel{Lo..Hi}={0..15}
  bool take_choice(const Words& words, Func func) {
    const std::string_view range = words.back();
    const std::size_t open = range.rfind('{'), dots = range.rfind("..");
    if (after(words, "Algo").empty() || after(words, "proto").empty() || open == range.npos ||
        dots == range.npos || dots < open || !range.ends_with('}'))
      return false;
    const auto bytes = number_in(words[1], 0, INT64_MAX);
    const auto lo = number_in(range.substr(open + 1, dots - open - 1), 0, kMostLogChannels - 1);
    const auto hi =
        number_in(range.substr(dots + 2, range.size() - dots - 3), 0, kMostLogChannels - 1);
    if (!bytes || !lo || !hi) fail("this is no choice of NCCL's: BYTES, channels {LO..HI}");
    static constexpr std::array<std::uint64_t, 12> kBytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    Pending& pending = pending_[thread_];
    const std::vector<NcclLogCall>& calls = pending.group.calls;
    std::size_t call = 0;
    while (call < calls.size() &&
           (pending.told[call] || calls[call].func != func ||
            calls[call].count * kBytes[calls[call].type] != static_cast<std::uint64_t>(*bytes)))
      ++call;
    if (call == calls.size()) {
      leave_out("choices without a line of their call (log COLL, too)");
      return true;
    }
    pending.told[call] = true;
    pending.group.choices.push_back(
        {func, static_cast<std::uint64_t>(*bytes), std::string(after(words, "Algo")),
         std::string(after(words, "proto")), static_cast<int>(*lo), static_cast<int>(*hi)});
    if (pending.group.choices.size() == calls.size()) end(pending);
    return true;
  }

  const std::string& file_;
  NcclLog& log_;
  std::uint64_t line_ = 0;
  NcclLogLines lines_;
  std::string thread_, process_, host_;  // of the record
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, Rank> at_;         // by process and address
  std::map<std::string, Rank> of_thread_;  // what a thread is setting up
  std::map<std::string, Pending> pending_;
};

}  // namespace

void read_nccl_log(std::string_view text, const std::string& file, NcclLog& log) {
  Reader reader(file, log);
  std::uint64_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    reader.take(text.substr(at, end - at), ++line);
    at = end + 1;
  }
  reader.finish();
}

}  // namespace ghostrank
