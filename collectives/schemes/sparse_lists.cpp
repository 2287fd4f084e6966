#include "collectives/schemes/sparse_lists.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

namespace ghostrank {
namespace {

constexpr std::uint64_t kOverhead = 4;  // bytes of a piece: its kind and the rank it comes from
constexpr std::uint64_t kIndexBytes = 4;
static_assert(kPieceValues * kIndexBytes <= kMostWords);

// Note::tag: the kind of the list, plus kLast on its last piece, plus kSingly where the words are
// indices and not runs of them. Note::index: the rank that owns the list.
enum Tag : std::uint8_t { kPart = 0, kGathered = 1, kDense = 2, kLast = 4, kSingly = 8 };

struct Run {
  std::uint32_t first = 0, count = 0;
};

std::vector<Run> runs_in(const Note& note) {
  const bool singly = (note.tag & kSingly) != 0;
  std::vector<Run> runs(note.words.size() / (singly ? kIndexBytes : sizeof(Run)));
  if (!singly && !runs.empty())
    std::memcpy(runs.data(), note.words.data(), runs.size() * sizeof(Run));
  for (std::size_t i = 0; singly && i < runs.size(); ++i) {
    std::memcpy(&runs[i].first, note.words.data() + i * kIndexBytes, kIndexBytes);
    runs[i].count = 1;
  }
  return runs;
}

// Elements of a piece: its values, and what `words` leave of the bytes of their indices.
std::uint64_t piece_elements(std::uint64_t values, std::uint64_t words, bool dense, DataType type) {
  const std::uint64_t index = dense ? 0 : values * kIndexBytes;
  const std::uint64_t padding = index > words ? index - words : 0;
  return values + (padding + bytes_of(type) - 1) / bytes_of(type);
}

// The j-th of `ranks` parts of a tensor.
Run part_of(std::uint64_t elements, int ranks, GroupRank j) {
  const auto cut = [&](GroupRank i) { return static_cast<std::uint32_t>(elements * i / ranks); };
  return {cut(j), cut(j + 1) - cut(j)};
}

// A note that outlives its event.
struct Kept {
  Note note;
  std::vector<std::byte> content, words;

  explicit Kept(const Note& from)
      : note(from),
        content(from.content.begin(), from.content.end()),
        words(from.words.begin(), from.words.end()) {}
  Note view() const {
    Note seen = note;
    seen.content = content;
    seen.words = words;
    return seen;
  }
};

// A list that the rank sends: of the nonzero elements between `next` and `end`.
struct Outgoing {
  GroupParty to = 0;
  std::uint8_t tag = 0;
  std::uint64_t next = 0, end = 0;
};

class Member final : public Agent {
 public:
  Member(int ranks, GroupRank rank, SparseLists form)
      : ranks_(ranks), rank_(rank), splits_(form == SparseLists::split_all_gather) {}

  void on_call(Io& io, const Call& call) override {
    calls_.push_back(call);
    if (calls_.size() == 1) start(io);
  }

  void on_note(Io& io, GroupParty /*from*/, const Note& note) override {
    if (calls_.empty() || note.call != call().number)
      early_.emplace_back(note);  // of a rank that is a call ahead
    else
      take(io, note);
    end_calls(io);
  }

  void on_room(Io& io) override {
    if (calls_.empty()) return;
    send_lists(io);
    end_calls(io);
  }

 private:
  const Call& call() const { return calls_.front(); }
  std::uint64_t count() const { return call().collective.count; }
  std::uint64_t block() const { return call().sparsity.block; }
  GroupRank right() const { return (rank_ + 1) % ranks_; }

  void start(Io& io) {
    Tensor& tensor = io.tensor(call().number);
    const auto content = tensor.read(0, count());
    mine_.assign(content.begin(), content.end());
    real_ = !content.empty();
    nonzero_.assign(splits_ ? own_part().count : 0, false);
    lists_missing_ = ranks_ - 1;
    parts_missing_ = splits_ ? ranks_ - 1 : 0;
    if (splits_) {
      mark_own(tensor);
      for (int k = 1; k < ranks_; ++k) {
        const GroupRank to = (rank_ + k) % ranks_;
        const Run part = part_of(count(), ranks_, to);
        outgoing_.push_back({to, kPart, part.first, std::uint64_t{part.first} + part.count});
      }
    } else if (ranks_ > 1) {
      outgoing_.push_back({right(), kGathered, 0, count()});
    }
    for (const Kept& kept : std::exchange(early_, {})) take(io, kept.view());
    send_lists(io);
    end_calls(io);
  }

  // Ends the call when all lists have come and left; the next call may wait already.
  void end_calls(Io& io) {
    if (calls_.empty() || lists_missing_ > 0 || parts_missing_ > 0 || !outgoing_.empty() ||
        !forwarded_.empty())
      return;
    io.done(call().number);
    calls_.pop_front();
    if (!calls_.empty()) start(io);
  }

  Run own_part() const { return part_of(count(), ranks_, rank_); }

  void mark_own(Tensor& tensor) {
    const Run part = own_part();
    std::uint64_t at = part.first;
    for (const std::uint64_t end = at + part.count; at < end;) {
      const std::uint64_t n = std::min(end, (at / block() + 1) * block()) - at;
      if (tensor.nonzero(at, n))
        mark({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(n)});
      at += n;
    }
  }

  void mark(const Run& run) {
    const auto at = nonzero_.begin() + (run.first - own_part().first);
    std::fill(at, at + run.count, true);
  }

  void take(Io& io, const Note& piece) {
    const bool is_part = (piece.tag & (kGathered | kDense)) == 0;
    apply(io, piece, is_part || !splits_);
    const bool last = (piece.tag & kLast) != 0;
    if (is_part) {
      for (const Run& run : runs_in(piece)) mark(run);
      if (last && --parts_missing_ == 0) gather_sums();
    } else {
      if (static_cast<GroupRank>(piece.index) != right()) forward(io, piece);
      lists_missing_ -= last;
    }
    send_lists(io);
  }

  // Adds the values of a piece to the tensor, or puts them at their indices.
  void apply(Io& io, const Note& piece, bool add) {
    if (piece.content.empty()) return;
    Tensor& tensor = io.tensor(call().number);
    const std::uint32_t element = bytes_of(piece.type);
    const std::byte* values = piece.content.data();
    for (const Run& run : runs_in(piece)) {
      const std::size_t bytes = std::size_t{run.count} * element;
      sum_.assign(values, values + bytes);
      if (add) {
        const auto old = tensor.read(run.first, run.count);
        add_elements(piece.type, sum_.data(), old.data(), run.count);
      }
      tensor.write(run.first, sum_);
      values += bytes;
    }
  }

  // All parts have come: sends the sums, without indices where that is shorter.
  void gather_sums() {
    const Run part = own_part();
    const std::uint64_t filled = std::count(nonzero_.begin(), nonzero_.end(), true);
    const std::uint32_t element = bytes_of(call().type);
    const bool dense = filled * (element + kIndexBytes) > std::uint64_t{part.count} * element;
    outgoing_.push_back({right(), static_cast<std::uint8_t>(dense ? kDense : kGathered), part.first,
                         std::uint64_t{part.first} + part.count});
  }

  void forward(Io& io, const Note& piece) {
    if (!forwarded_.empty() || !io.send(right(), piece, Carriage::reliable))
      forwarded_.emplace_back(piece);
  }

  void send_lists(Io& io) {
    for (; !forwarded_.empty(); forwarded_.pop_front())
      if (!io.send(right(), forwarded_.front().view(), Carriage::reliable)) return;
    for (; !outgoing_.empty(); outgoing_.pop_front())
      for (bool last = false; !last;) {
        Outgoing list = outgoing_.front();
        last = next_piece(io, list);
        const bool dense = list.tag == kDense,
                   singly = !dense && runs_.size() * sizeof(Run) > values_ * kIndexBytes;
        if (singly) list_indices();
        const auto words =
            singly ? std::as_bytes(std::span(indices_)) : std::as_bytes(std::span(runs_));
        const std::uint64_t elements = piece_elements(values_, words.size(), dense, call().type);
        if (real_) content_.resize(elements * bytes_of(call().type));
        const int marks = (last ? kLast : 0) | (singly ? kSingly : 0);
        const Note note{.tag = static_cast<std::uint8_t>(list.tag | marks),
                        .call = call().number,
                        .index = static_cast<std::uint32_t>(rank_),
                        .type = call().type,
                        .elements = elements,
                        .content = content_,
                        .words = words};
        if (!io.send(list.to, note, Carriage::reliable)) return;
        outgoing_.front() = list;
      }
  }

  // The indices of runs_, one by one.
  void list_indices() {
    indices_.clear();
    for (const Run& run : runs_)
      for (std::uint32_t i = 0; i < run.count; ++i) indices_.push_back(run.first + i);
  }

  // Collects the next values of a list in runs_ and content_, and moves its `next` to the value
  // behind them. True: these are the last.
  bool next_piece(Io& io, Outgoing& list) {
    runs_.clear();
    content_.clear();
    values_ = 0;
    Tensor& tensor = io.tensor(call().number);
    while (list.next < list.end) {
      std::uint64_t n = std::min(list.end, (list.next / block() + 1) * block()) - list.next;
      if (travels(tensor, list, n)) {
        if (values_ == kPieceValues) return false;
        n = std::min(n, kPieceValues - values_);
        const bool joins = !runs_.empty() && runs_.back().first + runs_.back().count == list.next;
        if (!joins) runs_.push_back({static_cast<std::uint32_t>(list.next), 0});
        runs_.back().count += static_cast<std::uint32_t>(n);
        append(tensor, list, n);
        values_ += n;
      }
      list.next += n;
    }
    return true;
  }

  // Whether the elements [next, next + n), all of one block, are in the list. In lists of sums, the
  // elements of a block are all nonzero or all zero.
  bool travels(Tensor& tensor, const Outgoing& list, std::uint64_t n) {
    if (list.tag == kDense) return true;
    if (splits_ && list.tag == kGathered) return nonzero_[list.next - own_part().first];
    return tensor.nonzero(list.next, n);
  }

  void append(Tensor& tensor, const Outgoing& list, std::uint64_t n) {
    if (!real_) return;
    const bool of_sums = splits_ && list.tag != kPart;
    const std::uint32_t element = bytes_of(call().type);
    const auto values =
        of_sums ? tensor.read(list.next, n)
                : std::span<const std::byte>(mine_).subspan(list.next * element, n * element);
    content_.insert(content_.end(), values.begin(), values.end());
  }

  const int ranks_;
  const GroupRank rank_;
  const bool splits_;
  std::deque<Call> calls_;  // open calls; the first is under way
  std::deque<Kept> early_;  // pieces of the next call
  std::deque<Outgoing> outgoing_;
  std::deque<Kept> forwarded_;   // pieces of others that wait for room
  std::vector<std::byte> mine_;  // the tensor when the call began, if there is real data
  std::vector<bool> nonzero_;    // by element of the own part: in the list of any rank
  int lists_missing_ = 0, parts_missing_ = 0;  // of other ranks, that have not ended
  bool real_ = false;
  // The piece that is being written.
  std::vector<Run> runs_;
  std::vector<std::uint32_t> indices_;
  std::vector<std::byte> content_, sum_;
  std::uint64_t values_ = 0;
};

class SparseListEnds final : public Ends {
 public:
  SparseListEnds(int ranks, SparseLists form) : Ends(ranks), form_(form) {}

  std::unique_ptr<Agent> agent(GroupParty party) const override {
    return std::make_unique<Member>(size(), party, form_);
  }
  bool exact() const override { return false; }
  std::uint64_t overhead_bytes() const override { return kOverhead; }
  std::vector<Edge> traffic(const Call& call) const override;
  std::string refuses(const Call& call) const override {
    return call.collective.count <= 0xffffffffU ? "" : "its indices have 32 bits";
  }

 private:
  const SparseLists form_;
};

std::vector<Ends::Edge> SparseListEnds::traffic(const Call& call) const {
  std::vector<Edge> edges;
  if (size() < 2) return edges;
  const std::size_t n = size();
  const std::uint32_t element = bytes_of(call.type);
  const double listed = element + kIndexBytes;
  struct Sent {
    double bytes = 0, pieces = 0;
    void add(const Sent& other) { bytes += other.bytes, pieces += other.pieces; }
  };
  const auto list = [](double values, double value_bytes, double of_piece = 0) -> Sent {
    const double pieces = std::max(1.0, std::ceil(values / kPieceValues));
    return {values * value_bytes + pieces * (kOverhead + of_piece), pieces};
  };
  const auto edge = [&](GroupRank from, GroupRank to, const Sent& sent) {
    edges.push_back({from, to, static_cast<std::uint64_t>(std::llround(sent.bytes)),
                     static_cast<std::uint64_t>(std::llround(sent.pieces)), Carriage::reliable});
  };
  const std::uint64_t count = call.collective.count;
  if (form_ == SparseLists::all_gather) {
    const double d = call.sparsity.means(0, count, size()).density;
    const Sent one = list(d * static_cast<double>(count), listed);
    for (GroupRank r = 0; r < size(); ++r)
      edge(r, (r + 1) % size(), {one.bytes * (size() - 1), one.pieces * (size() - 1)});
    return edges;
  }
  // By part: a rank's list of it, and the list of its sums.
  std::vector<Sent> parts(n), sums(n);
  Sent all;
  for (GroupRank j = 0; j < size(); ++j) {
    const Run part = part_of(count, size(), j);
    const double values = part.count;
    const auto [d, u] =
        call.sparsity.means(part.first, std::uint64_t{part.first} + part.count, size());
    const std::size_t at = j;
    parts[at] = list(d * values, listed);
    sums[at] = u * listed > element ? list(values, element, sizeof(Run)) : list(u * values, listed);
    all.add(sums[at]);
  }
  for (GroupRank r = 0; r < size(); ++r) {
    for (int k = 1; k < size(); ++k) {
      const GroupRank to = (r + k) % size();
      edge(r, to, parts[to]);
    }
    // A rank passes on the sums of all parts but the next rank's own.
    const Sent& not_sent = sums[(r + 1) % size()];
    edge(r, (r + 1) % size(), {all.bytes - not_sent.bytes, all.pieces - not_sent.pieces});
  }
  return edges;
}

}  // namespace

std::unique_ptr<Ends> sparse_list_ends(int ranks, SparseLists form) {
  return std::make_unique<SparseListEnds>(ranks, form);
}

}  // namespace ghostrank
