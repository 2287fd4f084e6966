// Verified data: every element that is wrong is found.
#include "emulator/verify/rank_data.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/schedule.h"

namespace ghostrank {
namespace {

// The contributions of the ranks of an all-reduce, and the first rank's sum of all of them.
class AllReduce {
 public:
  AllReduce(int size, std::uint64_t count, DataType type)
      : type_(type), whole_{0, count, Buffer::work} {
    const Collective c{Func::all_reduce, size, count, bytes_of(type), 0};
    schedule_ = find_algorithm("generic", c.func, "ring")->make(c, {});
    first_ = of(0);
  }

  std::unique_ptr<RankData> of(GroupRank rank, std::uint64_t salt = 5) {
    return std::make_unique<RankData>(*schedule_, type_, rank, salt, spare_);
  }
  RankData& first() { return *first_; }
  std::vector<std::byte> copy(RankData& data) const {
    std::vector<std::byte> bytes(whole_.count * bytes_of(type_));
    data.read(whole_, bytes.data());
    return bytes;
  }
  // Adds in messages of `each` elements.
  void add(GroupRank rank, std::uint64_t each) {
    const std::vector<std::byte> theirs = copy(*of(rank));
    for (std::uint64_t at = 0; at < whole_.count; at += each)
      first_->write({at, std::min(each, whole_.count - at), Buffer::work},
                    theirs.data() + at * bytes_of(type_), Combine::reduce);
  }
  void add_others(std::uint64_t each) {
    for (GroupRank r = 1; r < schedule_->collective().size; ++r) add(r, each);
  }
  void put(RankData& into, const std::vector<std::byte>& from, std::size_t by = 0) const {
    into.write(whole_, from.data() + by * bytes_of(type_), Combine::copy);
  }

 private:
  DataType type_;
  Block whole_;
  SpareBuffers spare_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<RankData> first_;
};

constexpr DataType kEveryType[] = {DataType::int32, DataType::float32, DataType::bfloat16,
                                   DataType::int64, DataType::uint8};

TEST(Verify, NoticesEveryWrongElement) {
  for (DataType type : kEveryType) {
    for (int size : {1, 2, 7, 250, 251, 600}) {
      AllReduce call(size, 3000, type);
      call.add_others(size == 2 ? 100 : size == 7 ? 1500 : 3000);
      EXPECT_EQ(call.first().check().wrong, 0u) << size;
      EXPECT_EQ(call.first().check().elements, 3000u);
      std::vector<std::byte> sum = call.copy(call.first());
      const auto other = call.of(0, 6);
      call.put(*other, sum);
      EXPECT_GT(other->check().wrong, 2900u);  // from another call
      for (const std::size_t element : {0, 63, 64, 1023, 1024, 2999}) {
        std::byte& last = sum[element * bytes_of(type)];
        last ^= std::byte{1};
        call.put(call.first(), sum);
        EXPECT_EQ(call.first().check().wrong, 1u) << element;
        last ^= std::byte{1};
        call.put(call.first(), sum);
        EXPECT_EQ(call.first().check().wrong, 0u) << element;
      }
      if (size != 2 && size != 7) continue;
      call.add(size - 1, 7);  // add the last rank's share twice
      EXPECT_GT(call.first().check().wrong, 1500u);
    }
  }
}

// A tile found right is checked again when a part of it has been written.
TEST(Verify, NoticesWhatIsSpoiledLater) {
  AllReduce call(3, 5000, DataType::float32);
  call.add_others(5000);
  EXPECT_EQ(call.first().check().wrong, 0u);
  const std::vector<std::byte> zeros(4 * sizeof(float));
  for (const std::uint64_t at : {0, 1022, 2500, 4996}) {
    call.first().write({at, 4, Buffer::work}, zeros.data(), Combine::reduce);
    EXPECT_EQ(call.first().check().wrong, 0u) << at;
  }
  const std::vector<float> ones(4, 1);
  call.first().write({1022, 4, Buffer::work}, reinterpret_cast<const std::byte*>(ones.data()),
                     Combine::reduce);
  EXPECT_EQ(call.first().check().wrong, 4u);
  call.first().apply({{0, 8, Buffer::work}, {8, 8, Buffer::work}, Combine::reduce});
  EXPECT_GT(call.first().check().wrong, 4u);
}

TEST(Verify, NoticesWhatLiesAtAnotherPlace) {
  for (int size : {2, 600}) {
    AllReduce call(size, 20'000, DataType::int32), shorter(size, 8'000, DataType::int32);
    call.add_others(20'000);
    const std::vector<std::byte> sum = call.copy(call.first());
    for (std::size_t by : {1, 2, 512, 1023, 1024, 2048, 8192, 12'000}) {
      shorter.put(shorter.first(), sum, by);
      EXPECT_GT(shorter.first().check().wrong, 7'800u) << by;
    }
    shorter.put(shorter.first(), sum);
    EXPECT_EQ(shorter.first().check().wrong, 0u);
  }
}

}  // namespace
}  // namespace ghostrank
