// Numbers of things that must not be mixed. A Number is an int32 that knows what it counts: it
// is made of an integer only by name, `WorldRank(3)`, and none turns into another kind. A VectorBy
// is a vector that such numbers index.
//
// Counts, channels, steps and other integers stay integers. A number plus an integer is a number of
// the same kind; the difference of two is an integer.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace ghostrank {

// `Kind` only tells kinds apart. If it has a type Part, every number of kind Kind::Part is also a
// number of this kind, with the same value.
template <class Kind>
class Number {
 public:
  constexpr Number() = default;
  template <std::integral Integer>
  constexpr explicit Number(Integer value) : value_(static_cast<std::int32_t>(value)) {}
  template <class Other>
  requires std::same_as<typename Kind::Part, Other>
  constexpr Number(Number<Other> part) : value_(part.value()) {}  // NOLINT: a rank is a party

  constexpr std::int32_t value() const { return value_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }

  friend constexpr auto operator<=>(Number, Number) = default;
  friend constexpr bool operator==(Number, Number) = default;
  friend constexpr Number operator+(Number n, std::int32_t more) { return Number(n.value_ + more); }
  friend constexpr Number operator-(Number n, std::int32_t less) { return Number(n.value_ - less); }
  friend constexpr std::int32_t operator-(Number a, Number b) { return a.value_ - b.value_; }
  constexpr Number& operator++() {
    ++value_;
    return *this;
  }
  friend std::string to_string(Number n) { return std::to_string(n.value_); }
  template <class Stream>
  friend Stream& operator<<(Stream& out, Number n) {
    out << n.value_;
    return out;
  }

 private:
  std::int32_t value_ = 0;
};

// The numbers from `first` up to, not including, `last`.
template <class Key>
class NumberRange {
 public:
  class Iterator {
   public:
    using value_type = Key;
    using difference_type = std::ptrdiff_t;
    constexpr Iterator() = default;
    constexpr explicit Iterator(Key at) : at_(at) {}
    constexpr Key operator*() const { return at_; }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    constexpr Iterator operator++(int) { return std::exchange(*this, Iterator(at_ + 1)); }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    Key at_{};
  };

  constexpr NumberRange(Key first, Key last) : first_(first), last_(last) {}
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(last_); }

 private:
  Key first_, last_;
};

// The first `count` numbers of a kind: for (const Nic nic : each<Nic>(nics)).
template <class Key>
constexpr NumberRange<Key> each(std::integral auto count) {
  return {Key(0), Key(count)};
}

// A row for each number from 0 on.
template <class Key, class Row>
class VectorBy {
 public:
  using value_type = Row;
  VectorBy() = default;
  explicit VectorBy(std::integral auto count, const Row& row = Row())
      : rows_(static_cast<std::size_t>(count), row) {}
  VectorBy(std::initializer_list<Row> rows) : rows_(rows) {}
  explicit VectorBy(std::vector<Row> rows) : rows_(std::move(rows)) {}

  decltype(auto) operator[](Key key) { return rows_[key.index()]; }
  decltype(auto) operator[](Key key) const { return rows_[key.index()]; }
  decltype(auto) at(Key key) const { return rows_.at(key.index()); }
  int size() const { return static_cast<int>(rows_.size()); }
  bool empty() const { return rows_.empty(); }
  NumberRange<Key> keys() const { return each<Key>(size()); }
  auto begin() { return rows_.begin(); }
  auto end() { return rows_.end(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  decltype(auto) front() const { return rows_.front(); }
  decltype(auto) back() const { return rows_.back(); }
  // Appends a row and returns its number.
  Key push_back(Row row) {
    rows_.push_back(std::move(row));
    return Key(rows_.size() - 1);
  }
  void resize(std::integral auto count, const Row& row = Row()) { rows_.resize(count, row); }
  void reserve(std::integral auto count) { rows_.reserve(count); }
  void assign(std::integral auto count, const Row& row) { rows_.assign(count, row); }
  void clear() { rows_.clear(); }
  const std::vector<Row>& rows() const { return rows_; }
  std::vector<Row>& rows() { return rows_; }
  bool operator==(const VectorBy&) const = default;
  auto operator<=>(const VectorBy&) const = default;

 private:
  std::vector<Row> rows_;
};

struct WorldRankKind {};
struct WorldPartyKind {
  using Part = WorldRankKind;
};
struct NodeKind {};
struct NicKind {};
struct HostKind {};

// Numbers over a whole job.
using WorldRank = Number<WorldRankKind>;    // an emulated GPU
using WorldParty = Number<WorldPartyKind>;  // first the ranks, then the helpers of every scheme
using Node = Number<NodeKind>;              // an emulated server
using Nic = Number<NicKind>;                // node * nics_per_node + its number on the node
using Host = Number<HostKind>;              // a process of the job
inline constexpr WorldParty kNoParty{-1};

// Numbers in a communicator. Schedules compute with them, as positions in rings and trees, so they
// are plain integers.
using GroupRank = std::int32_t;
using GroupParty = std::int32_t;  // first the ranks, then the helpers (agent.h)
inline constexpr GroupRank kNoRank = -1;

// All ranks of a job, in order.
inline std::vector<WorldRank> world_ranks(int ranks) {
  std::vector<WorldRank> all;
  for (const WorldRank rank : each<WorldRank>(ranks)) all.push_back(rank);
  return all;
}

}  // namespace ghostrank

template <class Kind>
struct std::hash<ghostrank::Number<Kind>> {
  std::size_t operator()(ghostrank::Number<Kind> n) const noexcept { return n.index(); }
};
