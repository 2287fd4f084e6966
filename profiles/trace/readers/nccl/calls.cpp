#include "profiles/trace/readers/nccl/calls.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "profiles/error.h"
#include "profiles/trace/readers/formats.h"
#include "profiles/trace/readers/nccl/ranks.h"

namespace ghostrank {

std::uint32_t NcclRecords::process(const std::string& host, std::int64_t pid) {
  return process_of.try_emplace({host, pid}, static_cast<std::uint32_t>(process_of.size()))
      .first->second;
}

std::uint32_t NcclRecords::join(const NcclComm& comm, std::int32_t rank, std::uint32_t process,
                                const std::string& file,
                                const std::function<void(const std::string&)>& fail) {
  const auto [known, fresh] =
      comm_of.try_emplace(comm.id, static_cast<std::uint32_t>(comms.size()));
  if (fresh) comms.push_back(comm);
  if (const int before = comms[known->second].ranks; before != comm.ranks)
    fail("communicator " + quote(comm.id) + " has " + std::to_string(comm.ranks) +
         " ranks here and " + std::to_string(before) + " before");
  const auto [membership, first] = membership_at.try_emplace(
      {known->second, rank}, static_cast<std::uint32_t>(memberships.size()));
  if (first) memberships.push_back({known->second, process, rank, file});
  if (memberships[membership->second].process != process)
    fail("rank " + std::to_string(rank) + " of communicator " + quote(comm.id) +
         " is another process before; give the files of one job");
  return membership->second;
}

std::uint64_t NcclRecords::infer_sizes() {
  std::vector<int> least(comms.size());
  const auto reaches = [&](std::uint32_t comm, std::int32_t rank) {
    least[comm] = std::max(least[comm], rank + 1);
  };
  for (const NcclMembership& membership : memberships) reaches(membership.comm, membership.rank);
  for (const NcclRecord& record : records) reaches(record.comm, record.peer);
  std::uint64_t inferred = 0;
  for (std::size_t c = 0; c < comms.size(); ++c) {
    if (comms[c].ranks > 0) continue;
    comms[c].ranks = least[c];
    ++inferred;
  }
  return inferred;
}

namespace {

constexpr std::int64_t kMostMicros = 1'000'000'000'000;  // as picoseconds, 9 of them in 63 bits

class Importer {
 public:
  Importer(const NcclRecords& in, const std::string& path, Trace& trace)
      : in_(in), path_(path), trace_(trace) {}

  void run() {
    if (in_.records.empty())
      throw Error(path_ + ":1:1: there are no collectives, sends or receives in it");
    rank_of_membership_ = name_ranks(in_.comms, in_.memberships, path_, trace_);
    add_ranks();
    drop_incomplete();
    drop_unmatched();
    for (auto& [rank, records] : by_rank_) add_events(rank, records);
    for (const auto& [membership, dropped] : in_.dropped)
      if (dropped > 0) trace_.left_out["operations that the plugin dropped"] += dropped;
    if (roots_ > 0) trace_.notes.push_back(note_of_roots(roots_));
    if (untimed_ > 0)
      trace_.notes.push_back(
          std::to_string(untimed_) +
          " records have no event trace: they keep the order of the file, without delays");
  }

 private:
  // An all-to-all has a send and a receive for every rank; those to the rank itself are copies.
  bool is_copy(const NcclRecord& record) const {
    return record.call >= kNcclSend && record.peer == in_.memberships[record.membership].rank;
  }

  void add_ranks() {
    for (const NcclRecord& record : in_.records) {
      auto& of_rank = by_rank_[rank_of_membership_[record.membership]];
      if (is_copy(record))
        ++trace_.left_out["sends and receives of a rank to itself"];
      else
        of_rank.push_back(record);
    }
    // The kernels of an NCCL group are one launch and start together, but end in any order, which
    // is the order of the lines. Without times the order of the file is kept.
    const auto earlier = [](const NcclRecord& a, const NcclRecord& b) {
      const auto place = [](const NcclRecord& r) {
        return std::tuple(r.start_us, r.enqueued_us, r.comm, r.call, r.number);
      };
      return a.start_us < 0 ? b.start_us >= 0 : place(a) < place(b);
    };
    for (auto& [rank, records] : by_rank_) {
      keep_numbers_in_order(records);
      if (!std::is_sorted(records.begin(), records.end(), earlier))
        std::stable_sort(records.begin(), records.end(), earlier);
    }
  }

  // Calls of one kind on a communicator start in the order of their numbers. The GPU's times are
  // only good to some microseconds, within which kernels follow each other.
  static void keep_numbers_in_order(std::vector<NcclRecord>& records) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<NcclRecord*>> of_kind;
    for (NcclRecord& record : records)
      if (record.start_us >= 0) of_kind[{record.comm, record.call}].push_back(&record);
    for (auto& [kind, calls] : of_kind) {
      std::stable_sort(calls.begin(), calls.end(), [](const NcclRecord* a, const NcclRecord* b) {
        return a->number < b->number;
      });
      for (std::size_t i = 1; i < calls.size(); ++i) {
        calls[i]->start_us = std::max(calls[i]->start_us, calls[i - 1]->start_us);
        calls[i]->stop_us = std::max(calls[i]->stop_us, calls[i]->start_us);
        calls[i]->enqueued_us = std::max(calls[i]->enqueued_us, calls[i - 1]->enqueued_us);
      }
    }
  }

  // Leaves out calls, by their number, that some member with a file lacks (rings overflow, or sizes
  // are below the bound), because they cannot be played.
  void drop_incomplete() {
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // comm, call, number
    const auto key = [](const NcclRecord& record) {
      return Key{record.comm, record.call, record.number};
    };
    std::vector<Key> seen;  // sorted
    std::vector<std::ptrdiff_t> memberships(in_.comms.size());
    for (const NcclMembership& membership : in_.memberships) ++memberships[membership.comm];
    if (std::all_of(memberships.begin(), memberships.end(), [](auto count) { return count < 2; }))
      return;
    for (const NcclRecord& record : in_.records)
      if (record.call < kNcclSend) seen.push_back(key(record));
    std::sort(seen.begin(), seen.end());
    std::uint64_t lacking = 0;
    for (auto& [rank, records] : by_rank_)
      lacking += std::erase_if(records, [&](const NcclRecord& record) {
        const auto [from, to] = std::equal_range(seen.begin(), seen.end(), key(record));
        return record.call < kNcclSend && to - from < memberships[record.comm];
      });
    if (lacking > 0) trace_.left_out["calls that other members of the communicator lack"] = lacking;
  }

  // Leaves out sends and receives that the other end, which has a file, lacks: the first ones where
  // its calls of that kind do not begin with the communicator's first number, because its ring has
  // dropped those, else the last ones.
  void drop_unmatched() {
    using Ends = std::tuple<std::uint32_t, std::int32_t, std::int32_t>;  // comm, sender, receiver
    std::map<Ends, std::array<std::int64_t, 2>> of;                      // how many sends, receives
    std::map<std::uint32_t, std::uint64_t> first;                        // number by comm
    std::map<std::pair<std::uint32_t, bool>, std::uint64_t> begins;      // by membership, receives
    const auto receives = [](const NcclRecord& record) { return record.call == kNcclRecv; };
    const auto ends_of = [&](const NcclRecord& record) {
      const std::int32_t own = in_.memberships[record.membership].rank;
      return receives(record) ? Ends{record.comm, record.peer, own}
                              : Ends{record.comm, own, record.peer};
    };
    const auto least = [](auto& numbers, const auto& key, std::uint64_t number) {
      std::uint64_t& known = numbers.try_emplace(key, number).first->second;
      known = std::min(known, number);
    };
    for (const NcclRecord& record : in_.records) {
      least(first, record.comm, record.number);
      if (record.call >= kNcclSend)
        least(begins, std::pair(record.membership, receives(record)), record.number);
    }
    for (const auto& [rank, records] : by_rank_)
      for (const NcclRecord& record : records)
        if (record.call >= kNcclSend) ++of[ends_of(record)][receives(record)];
    std::uint64_t lacking = 0;
    for (auto& [rank, records] : by_rank_) {
      std::map<std::pair<Ends, bool>, std::int64_t> seen;
      lacking += std::erase_if(records, [&](const NcclRecord& record) {
        if (record.call < kNcclSend) return false;
        const auto other = in_.membership_at.find({record.comm, record.peer});
        if (other == in_.membership_at.end()) return false;
        const bool mine = receives(record);
        const Ends ends = ends_of(record);
        const std::int64_t own = of[ends][mine], theirs = of[ends][!mine];
        const std::int64_t number = seen[{ends, mine}]++;
        const auto begin = begins.find({other->second, !mine});
        const bool wrapped = begin != begins.end() && begin->second > first[record.comm];
        return wrapped ? number < own - theirs : number >= theirs;
      });
    }
    if (lacking > 0) trace_.left_out["sends and receives that the other end lacks"] = lacking;
  }

  void add_events(WorldRank number, const std::vector<NcclRecord>& records) {
    TraceRank& rank = trace_.given.emplace_back();
    rank.rank = number;
    rank.file = records.empty() ? path_ : in_.memberships[records.front().membership].file;
    rank.tracks = {"compute"};
    rank.events.reserve(2 * records.size());
    // Calls that nothing follows yet; events that the next call follows.
    std::vector<std::uint32_t> ended, before;
    std::int64_t last_start = -1, last_stop = -1;
    bool messages = false;  // the previous record is a message
    for (const NcclRecord& record : records) {
      const bool timed = record.start_us >= 0;
      untimed_ += !timed;
      if (timed && last_start >= 0) {
        const bool idle = record.start_us >= last_stop;
        const std::int64_t gap = record.start_us - (idle ? last_stop : last_start);
        if (idle) before.insert(before.end(), ended.begin(), ended.end());
        if (idle) ended.clear();
        TraceEvent compute;
        compute.kind = gap > 0 ? TraceEvent::Kind::compute : TraceEvent::Kind::join;
        compute.duration = picos(record, gap);
        compute.counted = false;
        compute.name = trace_.name("between calls");
        compute.position = record.line;
        before = {add_event(rank, compute, before)};
      }
      // Consecutive untimed messages are one NCCL group and start together.
      const bool grouped = record.call >= kNcclSend && messages;
      if (!timed && !grouped) {
        before.insert(before.end(), ended.begin(), ended.end());
        ended.clear();
        if (before.size() > 1) before = {add_event(rank, join_at(record), before)};
      }
      messages = record.call >= kNcclSend;
      ended.push_back(add_event(rank, event_of(record), before));
      if (timed) {
        last_start = record.start_us;
        last_stop = std::max(last_stop, record.stop_us);
      }
      ++trace_.used;
    }
  }

  // From microseconds that lie between two times of kernels up to `record`.
  Picoseconds picos(const NcclRecord& record, std::int64_t micros) const {
    if (micros > kMostMicros)
      throw Error(in_.memberships[record.membership].file + ":" + std::to_string(record.line) +
                  ":1: times of kernels that are more than 11 days apart; times are microseconds");
    return micros * kPicosPerMicro;
  }

  TraceEvent join_at(const NcclRecord& record) {
    TraceEvent join;
    join.name = trace_.name("between calls");
    join.position = record.line;
    return join;
  }

  TraceEvent event_of(const NcclRecord& record) {
    TraceEvent event;
    event.group = record.comm;
    event.stated = record.bytes;
    event.position = record.line;
    if (record.start_us >= 0) event.duration = picos(record, record.stop_us - record.start_us);
    if (record.call >= kNcclSend) {
      const auto& members = trace_.groups[record.comm].members;
      event.kind = record.call == kNcclSend ? TraceEvent::Kind::send : TraceEvent::Kind::recv;
      event.peer = members.empty() ? record.peer : members[record.peer].value();
      event.name = trace_.name(record.call == kNcclSend ? "Send" : "Recv");
      return event;
    }
    event.kind = TraceEvent::Kind::collective;
    event.func = kNcclCalls[record.call].func;
    event.blocks = kNcclCalls[record.call].blocks;
    event.name = trace_.name(kNcclCalls[record.call].name);
    event.peer = std::max(record.peer, 0);
    roots_ += has_root(event.func) && record.peer < 0;
    return event;
  }

  const NcclRecords& in_;
  const std::string& path_;  // of the first file, for errors
  Trace& trace_;
  std::vector<WorldRank> rank_of_membership_;
  std::map<WorldRank, std::vector<NcclRecord>> by_rank_;
  std::uint64_t untimed_ = 0, roots_ = 0;
};

}  // namespace

void import_records(const NcclRecords& records, const std::string& path, Trace& trace) {
  Importer(records, path, trace).run();
}

}  // namespace ghostrank
