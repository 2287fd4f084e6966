// One operation of a rank (compute, collective, send, receive, event), and lists of operations.
//
// Programs repeat: each layer runs the ops of the one before, and so does each micro-batch. A list
// therefore stores every distinct op once and 4 bytes per listed position, and one span of it, the
// body, may be repeated: its repetitions have positions, but take no memory. Code that reads only
// distinct() and times() spends no time on repetitions either.
//
//   listed     a b | c d e | f      begin 2, size 3, times 4
//   positions  a b | c d e | c d e | c d e | c d e | f
//
// Units: counts are elements of `dtype`, following the collective's convention
// (collectives/schedule.h). Threading: once appending has ended, any number of threads may read a
// list, and references from operator[] stay valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <vector>

#include "collectives/common/data_type.h"
#include "collectives/schedule.h"
#include "profiles/units.h"

namespace ghostrank {

struct Op {
  enum class Kind : std::uint8_t {
    compute,     // `duration`
    collective,  // `func`, `group`, `count` or `counts`, `dtype`, `peer` as the root, `tensor`
    send,    // `count` of `dtype` to the member `peer` positions after this rank in `group` (wraps)
    recv,    // likewise, from the member `peer` positions after (negative: before)
    record,  // `event`
    wait,    // `event`, of this iteration or the `previous` one
  };
  Kind kind = Kind::compute;
  Func func = Func::all_reduce;
  DataType dtype = DataType::float32;
  bool previous = false;     // wait: the previous iteration recorded the event
  std::uint16_t group = 0;   // index into Workload::group_names
  std::uint32_t label = 0;   // index into Program::labels: "forward", "bucket 12"
  std::uint32_t event = 0;   // record, wait
  std::int32_t peer = 0;     // send, recv: offset in the group; broadcast, reduce, ...: root
  std::uint32_t counts = 0;  // all_gather_v, all_to_all_v: index into Workload::counts
  // Of a collective that reduces: the tensor that it sums, numbered from 1 in its communicator; 0:
  // none is named. Its content per rank is drawn (JobSpec::tensors). Of a collective that exchanges
  // compressed payloads: the tensor that they encode (Workload::compressed).
  std::uint32_t tensor = 0;
  Reduction reduction = Reduction::sum;  // of a collective that reduces
  // The elements are float64 or float8, which are played as `dtype`, integers of the same size.
  bool floats = false;
  // The communicator of a send or receive: that of the group; one of the two ranks alone, as
  // PyTorch gives an isend outside a batch; or unknown, as in most traces: played as the group's,
  // and only the bytes are sure.
  enum class Within : std::uint8_t { group, pair, unknown };
  Within within = Within::group;
  // compute: no work, but the time that a rate or a timer takes, which run.jitter does not vary.
  bool pace = false;
  // Communication: the launch that this call belongs to, numbered from 1 (Workload::launches), and
  // its launch index; 0: none, the call starts alone.
  std::uint16_t launch_index = 0;
  std::uint32_t launch = 0;
  std::uint64_t count = 0;
  Picoseconds duration = 0;
  bool operator==(const Op&) const = default;
};

inline bool communicates(const Op& op) {
  return op.kind == Op::Kind::collective || op.kind == Op::Kind::send || op.kind == Op::Kind::recv;
}

// Functions that exchange compressed payloads, besides those that reduce.
constexpr bool exchanges_payloads(Func func) {
  return func == Func::all_gather || func == Func::all_gather_v || func == Func::broadcast ||
         func == Func::all_to_all;
}

// The type of its elements as people write it: that of `dtype`, or "float64", "float8".
std::string_view type_name(const Op& op);
inline bool has_floats(const Op& op) { return op.floats || !is_integer(op.dtype); }

class OpList {
 public:
  OpList() = default;
  OpList(std::initializer_list<Op> ops) {
    for (const Op& op : ops) push_back(op);
  }
  OpList(std::size_t times, const Op& op) : at_(times, times > 0 ? intern(op) : 0) {}

  void push_back(const Op& op) { at_.push_back(intern(op)); }

  // The listed ops from `begin` on are the body, played `times` times. Once per list; further ops
  // may follow.
  struct Body {
    std::size_t begin = 0, size = 0, times = 1;
    std::size_t end() const { return begin + size; }
    std::size_t played() const { return size * times; }
  };
  void repeat(std::size_t begin, std::size_t times);
  const Body& body() const { return body_; }  // of size 0: nothing is repeated

  std::size_t size() const { return at_.size() + body_.played() - body_.size; }
  bool empty() const { return at_.empty(); }
  const Op& operator[](std::size_t i) const { return distinct_[at_[listed(i)]]; }
  const Op& front() const { return (*this)[0]; }
  const Op& back() const { return (*this)[size() - 1]; }

  // By position: how many repetitions of the body come before the one that the position is in; 0
  // outside the body.
  std::size_t repetition(std::size_t i) const {
    return i < body_.end() || i - body_.begin >= body_.played() ? 0
                                                                : (i - body_.begin) / body_.size;
  }

  // Every op once, in the order of first appearance, and how many positions each has.
  const std::vector<Op>& distinct() const { return distinct_; }
  std::vector<std::uint64_t> times() const;

  // Returns this list with every op replaced by change(op).
  template <typename Change>
  OpList changed(Change change) const {
    return rewritten([&](const Op& op, OpList& out) { out.push_back(change(op)); });
  }
  // Returns the list that append(op, list) fills, called for this list's listed ops in order; what
  // it appends for the body becomes the new list's body.
  template <typename Append>
  OpList rewritten(Append append) const {
    OpList out;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      if (i == body_.begin) begin = out.size();
      append(distinct_[at_[i]], out);
      if (body_.size > 0 && i + 1 == body_.end()) out.repeat(begin, body_.times);
    }
    return out;
  }
  // The same with another number of repetitions.
  OpList repeated(std::size_t times) const;

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Op;
    using difference_type = std::ptrdiff_t;
    using pointer = const Op*;
    using reference = const Op&;

    Iterator() = default;
    Iterator(const OpList* list, std::size_t i) : list_(list), i_(i) {}
    const Op& operator*() const { return (*list_)[i_]; }
    const Op* operator->() const { return &(*list_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++i_;
      return before;
    }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }

   private:
    const OpList* list_ = nullptr;
    std::size_t i_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  // Releases spare capacity; later appends allocate again.
  void shrink_to_fit();
  std::size_t occupied_bytes() const;

 private:
  std::uint32_t intern(const Op& op);
  // The listed position that a position plays.
  std::size_t listed(std::size_t i) const {
    if (body_.size == 0 || i < body_.end()) return i;
    const std::size_t into = i - body_.begin;
    return into < body_.played() ? body_.begin + into % body_.size
                                 : i - (body_.played() - body_.size);
  }

  std::vector<Op> distinct_;
  std::vector<std::uint32_t> slots_;  // hash table of 1 + index into distinct_; 0: free
  std::vector<std::uint32_t> at_;     // by listed position: index into distinct_
  Body body_;
};

}  // namespace ghostrank
