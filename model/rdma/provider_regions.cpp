// Memory that stays registered, for the same memory to be posted again.
#include <utility>

#include "rdma/provider.hpp"
#include "rdma/provider_state.hpp"

namespace rvma {

bool Provider::is_registered(const Process& process, const Descriptor& post) const {
  const auto found = process.registered.find(post.local.value());
  if (found == process.registered.end() || found->second.is_posted || found->second.length != post.length) return false;
  // The addresses may be others' by now: what counts is the memory behind them.
  std::vector<PhysicalAddress> pages;
  process.space.pages(post.local, post.length, pages);
  return pages == found->second.pages;
}

/// Key of the region for a buffer: registered anew, or still.
std::uint32_t Provider::region_for(Process& process, const Descriptor& post_call) {
  const std::uint64_t address = post_call.local.value();
  if (is_registered(process, post_call)) {
    Process::Registered& region = process.registered[address];
    region.is_posted = true;
    --process.idle_regions;
    ++stats_.regions_reused;
    return region.key;
  }
  const std::uint32_t key = ++last_key_;
  ++stats_.regions;
  if (p_.rdma.registration_cache > 0U) {
    const auto found = process.registered.find(address);
    const bool is_posted = found != process.registered.end() && found->second.is_posted;
    if (found != process.registered.end() && !is_posted) {
      const std::uint32_t old = found->second.key;
      process.registered_address.erase(old);
      process.registered.erase(found);
      --process.idle_regions;
      deregister(process, old);
    }
    // Memory that is posted twice at a time is registered twice, and one of them is not kept.
    if (!is_posted) {
      Process::Registered& region = process.registered[address];
      region.key = key;
      region.length = post_call.length;
      region.is_posted = true;
      process.space.pages(post_call.local, post_call.length, region.pages);
      process.registered_address[key] = address;
    }
  }
  Descriptor region;
  region.opcode = Opcode::rdma_register;
  region.key = key;
  region.local = post_call.local;
  region.length = post_call.length;
  region.single_page = post_call.single_page;
  region.page_list = post_call.page_list;
  post(process, region);
  return key;
}

void Provider::withdraw_region(Process& process, std::uint32_t key) {
  const auto kept = process.registered_address.find(key);
  if (kept == process.registered_address.end()) {
    deregister(process, key);
    return;
  }
  Process::Registered& region = process.registered[kept->second];
  region.is_posted = false;
  region.last_use = ++process.uses;
  if (++process.idle_regions <= p_.rdma.registration_cache) return;
  const auto* oldest = &*process.registered_address.find(key);
  std::uint64_t oldest_use = region.last_use;
  for (const auto& entry : process.registered_address) {
    const Process::Registered& other = process.registered[entry.second];
    if (other.is_posted || other.last_use > oldest_use) continue;
    oldest = &entry;
    oldest_use = other.last_use;
  }
  const auto [old, address] = *oldest;
  process.registered.erase(address);
  process.registered_address.erase(old);
  --process.idle_regions;
  deregister(process, old);
}

void Provider::deregister(Process& process, std::uint32_t key) {
  Descriptor region;
  region.opcode = Opcode::rdma_deregister;
  region.key = key;
  post(process, region);
}

}  // namespace rvma
