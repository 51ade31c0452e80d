/// \file
/// The software that gives the ranks of a node RVMA's calls on an RDMA NIC. It takes the driver's descriptors in the
/// RNIC's stead and does what they ask for with queue pairs, regions and messages between the ranks: windows, buckets,
/// binding and counting are this software's, done on the rank's own core.
///
/// docs/explanation/rdma.md maps every call. In short: a put asks the receiver's software for an address and a key (a
/// send there, a send back), writes, and the receiver's software learns of the completion as rdma.completion says.
#pragma once

#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

#include "base/component.hpp"
#include "base/random.hpp"
#include "driver/pinned_memory.hpp"
#include "host/address_space.hpp"
#include "host/config.hpp"
#include "host/core.hpp"
#include "nic/config.hpp"
#include "nic/fifo_ring.hpp"
#include "nic/observer.hpp"
#include "nic/window_store.hpp"
#include "rdma/config.hpp"
#include "rdma/control_message.hpp"
#include "rdma/rdma_nic_if.hpp"
#include "rdma/work_queue.hpp"

namespace rvma {

class Provider;

/// The software of all nodes: one tells another of what it has bound there (provider_advertising.cpp).
struct ProviderDirectory {
  std::vector<Provider*> providers;  ///< by node
};

struct ProviderStats {
  Counter connections{"connections", "connections set up, each end counts"};
  Counter requests{"messages", "requests for an address sent"};
  Counter grants{"messages", "addresses given out"};
  Counter refusals{"messages", "requests refused"};
  Counter advertisements{"messages", "buffers told to the rank that uses them, before it asked"};
  Counter renewals{"buffers", "posted again where their sender knows them: slots of the message layer"};
  Counter advertised_writes{"writes", "writes to advertised buffers, without an exchange"};
  Counter revocations{"messages", "advertised buffers asked back"};
  Counter notices{"messages", "news of completion sent behind a write"};
  Counter reminders{"messages", "questions after an answer that stayed away"};
  Counter control_messages{"messages", "messages of the software sent, all kinds"};
  Counter control_bytes{"bytes", "of those messages"};
  Counter completion_entries{"entries", "entries of completion queues handled"};
  Counter regions{"regions", "regions registered"};
  Counter regions_reused{"regions", "buffers posted in memory that was registered still"};
  Counter writes{"writes", "writes posted"};
  Counter reads{"reads", "reads posted"};
  TimeSum busy_ns{"core time of this software"};
  TimeSum held_up_ns{"time that its work waited because the core was computing"};
  TimeSum exchange_ns{"time from a request for an address to its answer, each on its own, connection set-up included"};
  Peak queue{"items", "descriptors, entries and retries waiting for a core at a time"};
  BOOST_DESCRIBE_CLASS(ProviderStats, (),
                       (connections, requests, grants, refusals, advertisements, renewals, advertised_writes,
                        revocations, notices, reminders, control_messages, control_bytes, completion_entries, regions,
                        regions_reused, writes, reads, busy_ns, held_up_ns, exchange_ns, queue),
                       (), ())
};

class Provider : public Component {
 public:
  /// From the cores, in the place of the RNIC's: an MMIO write carries a descriptor (nic.command.mode inline), at
  /// pid x kMmioPageBytes + kInlineOffset.
  tlm_utils::multi_passthrough_target_socket<Provider> commands;
  /// To the NIC, through PCIe.
  tlm_utils::simple_initiator_socket<Provider> mmio;

  struct Parameters {
    const NicConfig& nic;
    const RdmaConfig& rdma;
    const HostConfig& host;
    NodeId node;
    RankId first_rank;  ///< of this node
    std::uint32_t ranks = 0;
    std::uint32_t ranks_per_node = 1;
    RdmaCompletion completion = RdmaCompletion::ack_then_send;  ///< never auto_
    ProviderDirectory* directory = nullptr;
  };
  /// Everything that is referred to outlives the provider.
  Provider(const sc_core::sc_module_name& name, SimContext& context, const Parameters& parameters, MemoryIf& memory,
           FrameAllocator& frames, RdmaNicIf& nic, const ObserverList& observers);
  ~Provider() override;

  /// Process `pid`, in order from 0, before the simulation starts. The software counts the descriptors that it has
  /// taken at `consumed_word`.
  void add_process(Core& core, AddressSpace& space, PhysicalAddress consumed_word);

  const ProviderStats& stats() const { return stats_; }

 private:
  struct Process;
  struct Connection;
  struct Put;
  struct Inbound;
  struct Request;
  struct Advertising;
  struct Advertised;
  enum class ItemKind : std::uint8_t { descriptor, entry, last_byte, retry, reminder };
  struct Late;
  struct Drained {
    WindowId window;
    Descriptor call;
  };
  struct Retry {
    Time due;
    Pid pid;
    std::uint32_t put = 0;
  };
  static constexpr std::uint32_t kNoPut = ~std::uint32_t{0};
  /// Of the answer to a put's request, or to the revocation of a window's advertised buffers; or news of completion
  /// that was lost.
  struct Reminder {
    Time due;
    Pid pid;
    std::uint32_t put = kNoPut;
    std::uint32_t message = 0;  ///< the put's
    Time asked;
    WindowId window;
    std::uint32_t era = 0;    ///< that is revoked
    std::uint32_t times = 0;  ///< it has been said
    ControlMessage news;      ///< if it is that
    std::uint32_t rank = 0;   ///< that is told the news
    bool is_news() const { return news.kind == ControlKind::written || news.kind == ControlKind::given_up; }
  };
  struct Item {
    ItemKind kind = ItemKind::descriptor;
    DescriptorBytes descriptor{};
    Cqe entry;
    std::uint32_t number = 0;  ///< of the ticket, or of the put
    Reminder reminder;
  };

  // Core time (provider.cpp)
  void b_transport(int core, tlm::tlm_generic_payload& transaction, sc_core::sc_time& delay);
  void add_item(Process& process, const Item& item);
  void arm(Process& process);
  void begin_first(Process& process);
  void run(Process& process);
  Time cost_of(const Process& process, const Item& item) const;
  void perform(Process& process, const Item& item);
  void watch_queue(Process& process);
  void take_entries(Process& process);
  // The NIC
  void end_of_elaboration() override;
  void start_of_simulation() override;
  Descriptor receive_of(const Process& process, std::uint32_t buffer) const;
  void post(Process& process, const Descriptor& descriptor);
  void entry_is_free();
  static std::uint32_t new_request(Process& process, const Request& request);
  void entry(Process& process, const Cqe& cqe);
  void request_ended(Process& process, const Cqe& cqe);
  // Connections and messages (provider_messages.cpp)
  static Connection& connection(Process& process, std::uint32_t rank);
  std::uint32_t queue_pair_of(const Process& process, std::uint32_t rank) const;
  void create_queue_pair(Process& process, Connection& connection, std::uint32_t rank);
  void connect(Process& process, std::uint32_t rank);
  void say(Process& process, std::uint32_t rank, const ControlMessage& message);
  void send(Process& process, std::uint32_t rank, ControlMessage message, bool by_management);
  static std::uint64_t next_place(Process& process, std::uint32_t rank);
  void connected(Process& process, std::uint32_t rank);
  void received(Process& process, std::uint32_t buffer);
  void take(Process& process, const ControlMessage& message);
  // Sender (provider_messages.cpp)
  void start(Process& process, const Descriptor& descriptor);
  void ask(Process& process, std::uint32_t put);
  void ask_later(const Process& process, std::uint32_t put);
  void write_to(Process& process, std::uint32_t put, VirtualAddress address, std::uint32_t key);
  void granted(Process& process, const ControlMessage& grant);
  void refused(Process& process, const ControlMessage& refusal);
  void retry_due();
  Put* take_answer(Process& process, const ControlMessage& answer);
  void written(Process& process, std::uint32_t put, Outcome outcome);
  void end(Process& process, std::uint32_t put, Outcome outcome);
  void tell_given_up(Process& process, const Put& put);
  // Answers that stay away (provider_reminders.cpp)
  void said(Process& process, std::uint32_t rank, const ControlMessage& message, Outcome outcome);
  void unheard(Process& process, std::uint32_t rank, const ControlMessage& message);
  void tell_again(const Process& process, std::uint32_t rank, const ControlMessage& news);
  void remind_later(Reminder reminder);
  bool is_wanted(const Reminder& reminder);
  static bool is_under_way(Process& process, const Put& put);
  void forget_reminders();
  void reminder_due();
  void remind(Process& process, Reminder reminder);
  void reminded(Process& process, const ControlMessage& reminder);
  void forgotten(Process& process, const ControlMessage& answer);
  // Gets (provider_gets.cpp)
  void open_for_answer(Process& process, std::uint32_t get);
  void let_read(Process& process, const ControlMessage& request);
  void read(Process& process, const ControlMessage& grant);
  void read_has_ended();
  void answered(const Completion& completion);
  void give_up(Process& process, std::uint32_t put, Outcome outcome);
  // Advertised buffers (provider_advertising.cpp)
  void may_advertise(const Descriptor& call, WindowId window);
  Advertising* advertising_of(WindowId window);
  void advertise(Process& process, Advertising& advertising);
  void tell_of(Process& process, Advertising& advertising, ControlMessage message);
  bool asks_in_vain(Process& process, const ControlMessage& request, WindowId window);
  bool waits_for_revocation(Process& process, const Descriptor& call, WindowId window);
  Advertising* advertising_of(const Process& process, const ControlMessage& message);
  void revoke(Process& process, WindowId window);
  void ask_back(Process& process, const Advertising& advertising, std::uint32_t times);
  void take_back(Process& process, WindowId window);
  void lose_advertisement(Process& process, const ControlMessage& message);
  void revoked(Process& process, const ControlMessage& answer);
  void end_revocation(Process& process, WindowId window);
  void bind_advertised(Pid pid, std::uint32_t ticket, std::uint32_t source, const DataHeader& header);
  void has_bound(WindowId window);
  void heard_of(Process& process, std::uint32_t ticket);
  void will_not_hear_of(std::uint32_t ticket);
  void take_advertisement(Process& process, const ControlMessage& message);
  static std::uint64_t give_up_advertised(Process& process, const ControlMessage& revocation);
  void give_back(Process& process, const ControlMessage& revocation);
  void use_advertised(Process& process, const ControlMessage& answer);
  bool write_to_advertised(Process& process, std::uint32_t put, bool& does_not_suit);
  // Regions (provider_regions.cpp)
  bool is_registered(const Process& process, const Descriptor& post) const;
  std::uint32_t region_for(Process& process, const Descriptor& post);
  void withdraw_region(Process& process, std::uint32_t key);
  void deregister(Process& process, std::uint32_t key);
  // Receiver (provider_windows.cpp)
  void execute(Process& process, const Descriptor& call);
  void open(Process& process, const Descriptor& call);
  void posted(Process& process, const Descriptor& call, WindowId window, BufferId buffer);
  void withdraw(Process& process, BufferId buffer);
  void call_window(Process& process, const Descriptor& call, WindowId window);
  void list_completed(const Descriptor& call, WindowId window);
  void close(Process& process, const Descriptor& call, WindowId window);
  void finish_closes();
  void bind(Process& process, const ControlMessage& request);
  void grant(Process& process, const ControlMessage& request, std::uint32_t ticket, const Inbound& inbound);
  void write_record(Process& process, Inbound& inbound);
  static PlacedPacket packet_of(const Inbound& inbound);
  void placed(const RdmaNicIf::Placed& placed);
  void complete(std::uint32_t ticket);
  void cut_off(Process& process, const ControlMessage& news);
  void count(Inbound& inbound);
  void take_completions(const StageTimes& left);
  void reap();
  void answer(const Descriptor& call, Status status, std::uint64_t value);
  void write_words(PhysicalAddress to, std::uint64_t first, std::uint64_t second);

  Process& process_of(Pid pid) { return *processes_[pid.index()]; }
  NodeId node_of(std::uint32_t rank) const { return NodeId{rank / p_.ranks_per_node}; }
  Pid pid_of(std::uint32_t rank) const { return Pid{static_cast<std::uint16_t>(rank % p_.ranks_per_node)}; }

  const Parameters p_;
  const NicConfig windows_config_;
  const Time issue_;  ///< core time of posting one request
  const std::uint64_t page_bytes_;
  MemoryIf& memory_;
  RdmaNicIf& nic_;
  const ObserverList& observers_;
  FrameAllocator& frames_;
  PinnedMemory pinned_;
  WindowStore windows_;
  Random random_;                                    ///< mailboxes and keys of windows for answers
  std::vector<std::unique_ptr<Process>> processes_;  ///< by pid

  struct GetPlace {
    Pid pid;
    std::uint32_t put = 0;
  };
  boost::unordered_flat_map<WindowId, GetPlace> gets_;               ///< by their window for the answer
  boost::unordered_flat_map<std::uint32_t, std::uint32_t> answers_;  ///< tickets, by the key of the region
  std::uint32_t open_requests_ = 0;  ///< work requests that the NIC has, or whose end is not taken
  FifoRing<std::pair<Pid, Descriptor>> waiting_requests_;  ///< for one of these to end; none while there are fewer
  std::uint32_t open_reads_ = 0;
  FifoRing<std::pair<Pid, Descriptor>> waiting_reads_;  ///< for one of these to end
  std::uint32_t last_key_ = 0;
  std::vector<std::uint32_t> keys_;  ///< of buffers, by number
  std::uint32_t last_ticket_ = 0;
  boost::unordered_flat_map<WindowId, Advertising> advertising_;
  /// What waited for the revocation of a window that has closed itself meanwhile.
  std::vector<std::function<void()>> orphans_;
  boost::unordered_flat_map<std::uint32_t, WindowId> tickets_;  ///< advertised, taken by the sender, not heard of
  std::uint32_t last_era_ = 0;
  boost::unordered_flat_map<std::uint32_t, std::unique_ptr<Inbound>> inbound_;  ///< by ticket
  /// Messages whose completion was told before they were whole.
  boost::unordered_flat_map<std::uint32_t, Late> late_;
  FifoRing<Retry> retries_;
  FifoRing<Reminder> reminders_;
  std::vector<Drained> drained_;
  std::vector<Completion> due_;                ///< scratch
  std::vector<WindowStore::Expired> expired_;  ///< scratch
  tlm::tlm_generic_payload write_;
  ProviderStats stats_;
  Wakeup retry_;
  Wakeup reminder_;
};

}  // namespace rvma
