#include "nic/page_translator.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace rvma {
namespace {

constexpr std::uint32_t kEntryBytes = 8;
constexpr std::uint32_t kLineBytes = PageCache::kLinePages * kEntryBytes;

unsigned log2_of(std::uint64_t power_of_two) {
  unsigned shift = 0;
  while ((std::uint64_t{1} << shift) < power_of_two) ++shift;
  return shift;
}

std::uint64_t load_little_endian(const std::uint8_t* bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < kEntryBytes; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

}  // namespace

PageTranslator::PageTranslator(Component& owner, std::uint64_t page_bytes, std::uint32_t fetches, PageCache cache,
                               Counts counts, Translated translated, std::function<void()> unblocked)
    : owner_(owner),
      page_shift_(log2_of(page_bytes)),
      cache_(std::move(cache)),
      counts_(counts),
      translated_(std::move(translated)),
      unblocked_(std::move(unblocked)),
      line_buffers_(kLineBytes),
      fetches_(fetches) {
  for (Index i = fetches; i > 0; --i) free_fetches_.push_back(i - 1);
}

void PageTranslator::translate(PlacedPacket placed, const TranslatedRegion& region, Cycles cycle) {
  const std::uint64_t page_bytes = std::uint64_t{1} << page_shift_;
  const std::uint64_t head_offset = region.head.value() & (page_bytes - 1);
  const std::uint32_t bytes = placed.payload_length;
  Translation translation;
  if (region.single_page) {
    // The descriptor holds the translation itself.
    if (bytes > 0) {
      translation.to.add(PhysicalAddress{region.page_list.value() + head_offset + placed.buffer_offset}, bytes);
    }
    translated_(std::move(placed), translation.to, cycle);
    return;
  }
  // Page by page; the head's place in its page shifts every border.
  translation.posting = region.posting;
  translation.page_list = region.page_list;
  translation.pages = (head_offset + region.size + page_bytes - 1) >> page_shift_;
  translation.position = head_offset + placed.buffer_offset;
  translation.remaining = bytes;
  translation.placed = std::move(placed);
  PageCache::Key missing;
  if (go_on(translation, missing)) {
    translated_(std::move(translation.placed), translation.to, cycle);
    return;
  }
  translation.waits_since = owner_.now();
  const Index waiting = waiting_.take();
  waiting_[waiting] = std::move(translation);
  counts_.waiting.observe(waiting_.taken());
  wait_for(waiting, missing);
}

bool PageTranslator::go_on(Translation& translation, PageCache::Key& missing) {
  const std::uint64_t page_bytes = std::uint64_t{1} << page_shift_;
  while (translation.remaining > 0) {
    const std::uint64_t page = translation.position >> page_shift_;
    const PageCache::Key key{translation.posting, page / PageCache::kLinePages};
    const PageCache::Line* line = cache_.find(key);
    if (line == nullptr) {
      if (!translation.missed) ++counts_.misses;
      translation.missed = true;
      missing = key;
      return false;
    }
    if (!translation.missed) ++counts_.hits;
    translation.missed = false;
    const std::uint64_t in_page = translation.position & (page_bytes - 1);
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(translation.remaining, page_bytes - in_page));
    translation.to.add(PhysicalAddress{(*line)[page % PageCache::kLinePages].value() + in_page}, bytes);
    translation.position += bytes;
    translation.remaining -= bytes;
  }
  return true;
}

PageTranslator::Index PageTranslator::find_fetch(const PageCache::Key& key) const {
  for (Index i = 0; i < fetches_.size(); ++i) {
    if (fetches_[i].busy && fetches_[i].key == key) return i;
  }
  return kNone;
}

void PageTranslator::wait_for(Index waiting, const PageCache::Key& missing) {
  const Index shared = find_fetch(missing);
  if (shared != kNone) {
    Fetch& under_way = fetches_[shared];
    waiting_[waiting].next = kNone;
    waiting_[under_way.last_waiting].next = waiting;
    under_way.last_waiting = waiting;
  } else if (free_fetches_.empty()) {
    blocked_.push(waiting);
  } else {
    fetch(waiting, missing);
  }
}

void PageTranslator::fetch(Index waiting, const PageCache::Key& missing) {
  const Index index = free_fetches_.back();
  free_fetches_.pop_back();
  Fetch& started = fetches_[index];
  started.busy = true;
  started.key = missing;
  started.since = owner_.now();
  started.bytes = line_buffers_.acquire();
  started.first_waiting = waiting;
  started.last_waiting = waiting;
  Translation& translation = waiting_[waiting];
  translation.next = kNone;
  ++counts_.line_fetches;

  // The list ends with the region's last page: nothing is read behind it.
  const std::uint64_t first_page = missing.line * PageCache::kLinePages;
  const std::uint64_t entries = std::min<std::uint64_t>(PageCache::kLinePages, translation.pages - first_page);
  counts_.line_bytes += entries * kEntryBytes;
  DmaRead read;
  read.from.add(PhysicalAddress{translation.page_list.value() + first_page * kEntryBytes},
                static_cast<std::uint32_t>(entries * kEntryBytes));
  read.into = started.bytes;
  read.tag = index;
  dma_->read(std::move(read), *this, owner_.now());
}

void PageTranslator::dma_written(std::uint64_t /*tag*/, Time /*entered*/, Time /*visible*/) {
  RVMA_ASSERT(false, "page translation writes nothing");
}

void PageTranslator::dma_read_done(std::uint64_t tag) {
  // 1. The line goes into the cache, its fetch is free.
  Fetch& done = fetches_[tag];
  PageCache::Line line;
  for (std::size_t i = 0; i < line.size(); ++i) {
    line[i] = PhysicalAddress{load_little_endian(done.bytes->data() + i * kEntryBytes)};
  }
  cache_.insert(done.key, line);
  const auto fetches = static_cast<std::int64_t>(fetches_.size());
  counts_.fetch.occupy(Time::from_ps((owner_.now() - done.since).ps() / fetches), 1);
  done.bytes.reset();
  done.busy = false;
  free_fetches_.push_back(static_cast<Index>(tag));

  // 2. Who waited for it goes on, in the order in which they came.
  const Cycles cycle = owner_.current_cycle();
  for (Index waiting = done.first_waiting; waiting != kNone;) {
    const Index next = waiting_[waiting].next;
    resume(waiting, cycle);
    waiting = next;
  }
  // 3. Then who waited for a free fetch, as far as there are any.
  while (!free_fetches_.empty() && !blocked_.empty()) resume(blocked_.pop(), cycle);
  // 4. And decisions.
  unblocked_();
}

void PageTranslator::resume(Index waiting, Cycles cycle) {
  PageCache::Key missing;
  if (!go_on(waiting_[waiting], missing)) {
    wait_for(waiting, missing);
    return;
  }
  counts_.wait_ns += owner_.now() - waiting_[waiting].waits_since;
  Translation translation = std::move(waiting_[waiting]);
  waiting_.give_back(waiting);
  translated_(std::move(translation.placed), translation.to, cycle);
}

}  // namespace rvma
