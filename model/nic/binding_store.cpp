#include "nic/binding_store.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace rvma {

namespace {
constexpr std::uint32_t kBitsPerWord = 64;
constexpr std::uint32_t kInitialWords = 4;
/// A bitmap that grew beyond this gives its memory back when its message ends.
constexpr std::size_t kKeptWords = 64;
constexpr std::uint64_t kFullWord = ~std::uint64_t{0};
}  // namespace

bool PacketBitmap::mark(std::uint32_t index) {
  const std::uint32_t word = index / kBitsPerWord;
  if (word < first_word_) return false;
  if (word - first_word_ >= words_.size()) grow(word - first_word_ + 1);
  const std::size_t mask = words_.size() - 1;
  const std::uint64_t bit = std::uint64_t{1} << (index % kBitsPerWord);
  std::uint64_t& bits = words_[word & mask];
  if ((bits & bit) != 0) return false;
  bits |= bit;
  while (words_[first_word_ & mask] == kFullWord) {
    words_[first_word_ & mask] = 0;
    ++first_word_;
  }
  return true;
}

void PacketBitmap::clear() {
  first_word_ = 0;
  if (words_.size() > kKeptWords) {
    words_ = {};
  } else {
    std::fill(words_.begin(), words_.end(), 0);
  }
}

void PacketBitmap::grow(std::uint32_t words_needed) {
  std::size_t size = std::max<std::size_t>(words_.size(), kInitialWords);
  while (size < words_needed) size *= 2;
  std::vector<std::uint64_t> grown(size, 0);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::size_t word = first_word_ + i;
    grown[word & (size - 1)] = words_[word & (words_.size() - 1)];
  }
  words_ = std::move(grown);
}

bool Binding::agrees_with(NodeId from, const DataHeader& header) const {
  return source == from && source_pid == header.source_pid && destination_pid == header.destination_pid &&
         mailbox == header.mailbox && key == header.key && message == header.message && offset == header.offset &&
         message_length == header.message_length;
}

BindingStore::BindingStore(std::uint32_t capacity) : capacity_(capacity) {}

std::uint32_t BindingStore::bind(NodeId source, const DataHeader& header, BufferId buffer,
                                 std::uint64_t message_offset) {
  RVMA_ASSERT(available(), "the caller checks that an entry is free");
  std::uint32_t entry = 0;
  if (free_.empty()) {
    entry = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
    free_.reserve(entries_.capacity());
  } else {
    entry = free_.back();
    free_.pop_back();
  }
  Binding& binding = entries_[entry];
  binding.in_use = true;
  binding.source = source;
  binding.source_pid = header.source_pid;
  binding.destination_pid = header.destination_pid;
  binding.mailbox = header.mailbox;
  binding.key = header.key;
  binding.message = header.message;
  binding.offset = header.offset;
  binding.message_length = header.message_length;
  binding.buffer = buffer;
  binding.message_offset = message_offset;
  binding.counted = 0;
  binding.on_the_way = 1;
  binding.cut_off = false;
  binding.placed.mark(header.packet_index);
  return entry;
}

void BindingStore::release(std::uint32_t entry) {
  RVMA_ASSERT(contains(entry), "only a bound message's entry is released");
  entries_[entry].in_use = false;
  entries_[entry].placed.clear();
  free_.push_back(entry);
}

}  // namespace rvma
