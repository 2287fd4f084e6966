// Blocks of one type; many are in use at one time and are touched in random order. Many blocks lie
// in chunks of 2 MiB, for which the store asks the kernel for huge pages: the TLB cannot hold some
// ten thousand small pages, and a TLB miss costs as much as the memory access itself. Without huge
// pages everything works as well, only slower.
//
// Bounds: memory grows to the most blocks that were in use at one time, by chunks that double in
// size up to 2 MiB, and is kept until trim(). Errors: std::bad_alloc. Threading: one owner.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <vector>

namespace ghostrank {

template <typename Block>
class BlockStore {
 public:
  // Returns a block as its last user left it, or a new one; valid until it is given back.
  Block* take() {
    if (spare_.empty()) return new_block();
    Block* const block = spare_.back();
    spare_.pop_back();
    return block;
  }
  void give_back(Block* block) { spare_.push_back(block); }

  // Frees the chunks that have no block in use.
  void trim() {
    std::sort(spare_.begin(), spare_.end(), std::less<>{});
    std::erase_if(chunks_, [this](const Chunk& chunk) {
      Block* const first = chunk.blocks.get();
      const auto begin = std::lower_bound(spare_.begin(), spare_.end(), first, std::less<>{});
      const auto end = std::lower_bound(begin, spare_.end(), first + chunk.size, std::less<>{});
      if (static_cast<std::size_t>(end - begin) < chunk.made) return false;
      spare_.erase(begin, end);
      return true;
    });
  }

 private:
  static_assert(std::is_trivially_destructible_v<Block>);
  static constexpr std::size_t kFirstBytes = 64 << 10, kHugeBytes = 2 << 20;
  static_assert(sizeof(Block) <= kFirstBytes);

  struct Free {
    void operator()(Block* blocks) const { std::free(blocks); }
  };
  struct Chunk {
    std::unique_ptr<Block, Free> blocks;
    std::size_t size = 0, made = 0;  // in blocks
  };

  Block* new_block() {
    if (chunks_.empty() || chunks_.back().made == chunks_.back().size) add_chunk();
    Chunk& chunk = chunks_.back();
    return new (chunk.blocks.get() + chunk.made++) Block;
  }
  void add_chunk() {
    const std::size_t last = chunks_.empty() ? 0 : chunks_.back().size * sizeof(Block);
    // A power of two, as an alignment must be; the blocks of the last chunk may not fill it.
    const std::size_t bytes = std::clamp(std::bit_ceil(2 * last), kFirstBytes, kHugeBytes);
    void* const memory = std::aligned_alloc(bytes, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (bytes == kHugeBytes) madvise(memory, bytes, MADV_HUGEPAGE);
    chunks_.push_back(
        {std::unique_ptr<Block, Free>(static_cast<Block*>(memory)), bytes / sizeof(Block), 0});
  }

  std::vector<Chunk> chunks_;  // all but the last one are full
  std::vector<Block*> spare_;
};

}  // namespace ghostrank
