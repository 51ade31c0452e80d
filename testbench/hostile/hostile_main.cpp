// A victim and an honest sender, whole RNICs, and a hostile node that sends whatever it likes. Everything goes over the
// wire as bytes. One seed a process, because SystemC elaborates once.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/describe/enum_to_string.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "attacker.hpp"
#include "hosts.hpp"

namespace rvma::hostile {
namespace {

constexpr std::uint64_t kMtuBytes = 256;
constexpr std::uint64_t kPutsPerEpoch = 3;
constexpr std::uint64_t kEpochs = 5;
constexpr std::uint64_t kSlot = 2000;  ///< bytes of a buffer that each put of an epoch has for itself
constexpr std::uint64_t kReadable = 5000;
constexpr std::uint64_t kOpenBuffers = 40;
constexpr std::uint64_t kOpenBytes = 3000;
constexpr std::uint64_t kAnswerBytes = 700;

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t attacks = 600;
  bool nack = true;
  bool other_layout = false;
  bool plants_a_leak = false;
  bool only_strange = false;  ///< nothing but what a stranger who knows no mailbox can send
};

Time us(double microseconds) { return Time::from_ps(static_cast<std::int64_t>(microseconds * 1e6)); }

/// Whose messages were bound where, at the victim.
class Witness : public NicObserver {
 public:
  void window_opened(NodeId node, Pid /*pid*/, WindowId slot, const Descriptor& call, Time /*at*/) override {
    if (node == kVictim && is_guarded(call.mailbox)) guarded_slots.push_back(slot);
  }
  void message_bound(NodeId node, const MessageRef& message, WindowId slot, BufferId /*buffer*/, Epoch /*epoch*/,
                     std::uint64_t buffer_offset, std::uint64_t length, Time /*at*/) override {
    if (node != kVictim || !(message.source == kHostile)) return;
    ++bound;
    places_[key_of(message)] = {buffer_offset, buffer_offset + length};
    const bool is_intruder = std::find(guarded_slots.begin(), guarded_slots.end(), slot) != guarded_slots.end();
    if (is_intruder) ++intruders;
  }
  void packet_placed(NodeId node, const PlacedPacket& packet, std::uint64_t buffer_offset, Time /*at*/) override {
    if (node != kVictim || !(packet.message.source == kHostile)) return;
    const auto place = places_.find(key_of(packet.message));
    const bool is_own = place != places_.end() && buffer_offset >= place->second.first &&
                        buffer_offset + packet.payload_length <= place->second.second;
    if (!is_own) ++misplaced;
  }
  void message_refused(NodeId node, const MessageRef& message, Outcome /*reason*/, Time /*at*/) override {
    if (node == kVictim && message.source == kHostile) ++refused;
  }
  void packet_ignored(NodeId node, const Packet& packet, const char* /*why*/, Time /*at*/) override {
    if (node == kVictim && packet.transport.source == kHostile) ++ignored;
  }
  void get_accepted(NodeId node, const MessageRef& request, BufferId /*buffer*/, Time /*at*/) override {
    if (node == kVictim && request.source == kHostile) ++intruders;
  }

  std::vector<Secret> guarded;
  std::vector<WindowId> guarded_slots;
  std::uint64_t bound = 0;
  std::uint64_t refused = 0;
  std::uint64_t ignored = 0;
  std::uint64_t intruders = 0;  ///< hostile messages in guarded windows, and gets served
  std::uint64_t misplaced = 0;  ///< hostile packets outside of what their own message was bound to

 private:
  using Key = std::array<std::uint32_t, 3>;
  static Key key_of(const MessageRef& message) {
    return {message.source_incarnation, message.generation, message.message.value()};
  }

  bool is_guarded(Mailbox mailbox) const {
    return std::any_of(guarded.begin(), guarded.end(), [&](const Secret& secret) { return secret.mailbox == mailbox; });
  }

  std::map<Key, std::pair<std::uint64_t, std::uint64_t>> places_;  ///< first byte and end in the buffer
};

/// Looks for numbers that have no business on the wire.
class Searcher {
 public:
  void add(std::string what, std::uint64_t value, unsigned bytes) {
    Needle needle{std::move(what), {}, {}};
    for (unsigned i = 0; i < bytes; ++i) {
      needle.little.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
      needle.big.insert(needle.big.begin(), static_cast<std::uint8_t>(value >> (8 * i)));
    }
    needles_.push_back(std::move(needle));
  }
  void look(const Frame& frame) {
    constexpr std::ptrdiff_t kShown = 160;  // bytes: all headers
    constexpr std::ptrdiff_t kChecksumBytes = 4;
    ++frames;
    // The checksum at the end tells of the bytes before it only, and with them looks like anything sooner or later.
    const auto end = frame.end() - std::min<std::ptrdiff_t>(kChecksumBytes, frame.end() - frame.begin());
    for (const Needle& needle : needles_) {
      for (const Frame* bytes : {&needle.little, &needle.big}) {
        const auto at = std::search(frame.begin(), end, bytes->begin(), bytes->end());
        if (at == end) continue;
        if (found++ > 0) continue;
        first =
            fmt::format("{} at byte {} of {}: {:02x}", needle.what, at - frame.begin(), frame.size(),
                        fmt::join(frame.begin(),
                                  frame.begin() + std::min<std::ptrdiff_t>(kShown, frame.end() - frame.begin()), ""));
      }
    }
  }
  std::size_t needles() const { return needles_.size(); }
  std::uint64_t frames = 0;
  std::uint64_t found = 0;
  std::string first;

 private:
  struct Needle {
    std::string what;
    Frame little;
    Frame big;
  };
  std::vector<Needle> needles_;
};

class Bench {
 public:
  explicit Bench(const Options& options);
  /// Number of things that are wrong, each printed.
  int run();

 private:
  struct Posted {
    Host::Region region;
    PhysicalAddress word;
  };
  struct Put {
    Host::Region source;
    PhysicalAddress word;
    std::uint64_t length = 0;
  };
  struct Get {
    Host::Region into;
    PhysicalAddress word;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  static NicConfig config_of(const Options& options);
  void later(Host& host, Time& when, const Descriptor& call);
  PhysicalAddress open(Time& when, const Secret& window, std::uint64_t threshold, Placement placement,
                       std::uint8_t flags);
  Posted post(Time& when, const Secret& window, std::uint64_t bytes, std::uint64_t skew);
  Put put(Host& from, NodeId to, Time& when, const Secret& window, std::uint64_t offset, std::uint64_t length);
  Get get(Host& from, NodeId to, Time& when, const Secret& window, std::uint64_t offset, std::uint64_t length);
  void fill(Host& host, const Host::Region& region);
  void set_up();
  void traffic();
  void attack();
  void know_secrets(const Posted& posted);
  void keep_secret(const Host::Region& region);
  void expect_epochs(const std::vector<Posted>& buffers, const std::vector<Put>& puts, bool is_managed);
  void expect_answers();
  void check_memory(const char* who, Host& host);
  void wrong(const std::string& what);

  Options options_;
  Random random_;
  SimContext context_;
  NicConfig config_;
  PacketPool packets_;
  PayloadPool payloads_;
  PayloadPool wire_payloads_{65536};
  Witness witness_;
  ObserverList observers_;
  Wire wire_;
  Host honest_;
  Host victim_;
  Searcher searcher_;
  Secret steered_;
  Secret managed_;
  Secret readable_;
  Secret open_;
  Attacker attacker_;
  std::vector<Posted> steered_buffers_;
  std::vector<Posted> managed_buffers_;
  std::vector<Posted> open_buffers_;
  Posted readable_buffer_;
  std::vector<Put> steered_puts_;
  std::vector<Put> managed_puts_;
  std::vector<Put> outward_puts_;
  std::vector<Get> gets_;
  std::vector<Get> outward_gets_;
  std::vector<PhysicalAddress> answers_;
  std::uint64_t digest_ = 0;  ///< of all frames that the victim has sent
  std::uint64_t to_hostile_ = 0;
  int problems_ = 0;
};

/// Addresses that a search cannot take for anything else.
std::uint64_t base_of(const Options& options, unsigned host) {
  return (options.other_layout ? 0x6b31'd94e'0000'0000ULL : 0x5ec2'e7a1'0000'0000ULL) + host * 0x0000'0011'3700'0000ULL;
}

NicConfig Bench::config_of(const Options& options) {
  NicConfig config;
  config.mtu = Bytes{kMtuBytes};
  config.nack = options.nack;
  return config;
}

Secret secret_of(Random& random) {
  return {Mailbox{random.next()}, static_cast<std::uint32_t>(1 + random.below(0xffff'ffff))};
}

Bench::Bench(const Options& options)
    : options_(options),
      random_(options.seed, "bench"),
      context_(options.seed),
      config_(config_of(options)),
      payloads_(kMtuBytes),
      wire_("wire", context_, packets_, wire_payloads_),
      honest_("honest", context_, config_, kHonest, base_of(options, 0), wire_, packets_, payloads_, observers_),
      victim_("victim", context_, config_, kVictim, base_of(options, 1), wire_, packets_, payloads_, observers_),
      steered_(secret_of(random_)),
      managed_(secret_of(random_)),
      readable_(secret_of(random_)),
      open_{Mailbox{random_.next()}, 0},
      attacker_(options.seed, kMtuBytes, open_.mailbox, {steered_, managed_, readable_}) {
  witness_.guarded = {steered_, managed_, readable_};
  observers_.add(witness_);
  wire_.on_hostile([this](const Frame& frame) {
    attacker_.receive(frame);
    ++to_hostile_;
  });
  wire_.on_frame([this](NodeId from, const Frame& frame) {
    attacker_.overhear(frame);
    searcher_.look(frame);
    if (!(from == kVictim)) return;
    for (const std::uint8_t byte : frame) digest_ = mix64(digest_ + byte);
  });
}

void Bench::wrong(const std::string& what) {
  ++problems_;
  fmt::print("seed {}: {}\n", options_.seed, what);
}

// ----------------------------------------------------------------------------------------------------------------
// calls

/// Descriptors go one after another, so that an answer never finds another's place.
void Bench::later(Host& host, Time& when, const Descriptor& call) {
  wire_.at(when, [&host, call] { host.command(call); });
  when = when + us(0.4);
}

PhysicalAddress Bench::open(Time& when, const Secret& window, std::uint64_t threshold, Placement placement,
                            std::uint8_t flags) {
  Descriptor call;
  call.opcode = Opcode::init_window;
  call.mailbox = window.mailbox;
  call.key = window.key;
  call.threshold = threshold;
  call.threshold_type = ThresholdType::ops;
  call.placement = placement;
  call.window_flags = flags;
  call.response = victim_.make_word();
  answers_.push_back(call.response);
  later(victim_, when, call);
  return call.response;
}

Bench::Posted Bench::post(Time& when, const Secret& window, std::uint64_t bytes, std::uint64_t skew) {
  Posted posted{victim_.make_region(bytes, skew), victim_.make_word()};
  Descriptor call;
  call.opcode = Opcode::post_buffer;
  call.mailbox = window.mailbox;
  call.local = posted.region.head;
  call.length = bytes;
  call.page_list = posted.region.list;
  call.completion = posted.word;
  call.response = victim_.make_word();
  answers_.push_back(call.response);
  later(victim_, when, call);
  return posted;
}

void Bench::fill(Host& host, const Host::Region& region) {
  for (std::uint64_t i = 0; i < region.bytes; ++i) {
    const auto byte = static_cast<std::uint8_t>(random_.next());
    host.memory.host_write(region.address_of(i), &byte, 1);
  }
}

Bench::Put Bench::put(Host& from, NodeId to, Time& when, const Secret& window, std::uint64_t offset,
                      std::uint64_t length) {
  Put made{from.make_region(length, 100), from.make_word(), length};
  fill(from, made.source);
  Descriptor call;
  call.opcode = Opcode::put;
  call.mailbox = window.mailbox;
  call.key = window.key;
  call.offset = offset;
  call.length = length;
  call.local = made.source.head;
  call.page_list = made.source.list;
  call.completion = made.word;
  call.destination_node = to;
  later(from, when, call);
  return made;
}

Bench::Get Bench::get(Host& from, NodeId to, Time& when, const Secret& window, std::uint64_t offset,
                      std::uint64_t length) {
  Get made{from.make_region(length, 40), from.make_word(), offset, length};
  Descriptor call;
  call.opcode = Opcode::get;
  call.mailbox = window.mailbox;
  call.key = window.key;
  call.offset = offset;
  call.length = length;
  call.local = made.into.head;
  call.page_list = made.into.list;
  call.completion = made.word;
  call.destination_node = to;
  later(from, when, call);
  return made;
}

// ---------------------------------------------------------------------------------------------------------------
// phases

void Bench::set_up() {
  Time when = us(1);
  // Lengths and numbers of buffers that nothing on the wire may depend on.
  const std::uint64_t slack = options_.other_layout ? 64'513 : 64'311;  // long enough for a number of three bytes
  const std::uint64_t spare = options_.other_layout ? 4 : 1;
  open(when, steered_, kPutsPerEpoch, Placement::steered, 0);
  open(when, managed_, kPutsPerEpoch, Placement::managed, 0);
  open(when, readable_, 1, Placement::steered, kWindowReadable);
  open(when, open_, 4, Placement::steered, 0);
  const std::uint64_t bytes = kPutsPerEpoch * kSlot + slack;
  for (std::uint64_t i = 0; i < kEpochs; ++i) {
    steered_buffers_.push_back(post(when, steered_, bytes, 64 + 16 * i));
    managed_buffers_.push_back(post(when, managed_, bytes, 32 + 16 * i));
  }
  readable_buffer_ = post(when, readable_, kReadable, 48);
  fill(victim_, readable_buffer_.region);
  for (std::uint64_t i = 0; i < kOpenBuffers; ++i) open_buffers_.push_back(post(when, open_, kOpenBytes, 16 * i));
  for (std::uint64_t i = 0; i < spare; ++i) {
    steered_buffers_.push_back(post(when, steered_, bytes, 0));
    managed_buffers_.push_back(post(when, managed_, bytes, 0));
  }
  for (const auto* buffers : {&steered_buffers_, &managed_buffers_}) {
    for (const Posted& posted : *buffers) know_secrets(posted);
  }
  know_secrets(readable_buffer_);
  searcher_.add("a buffer's length", bytes, 4);
  for (const Posted& posted : open_buffers_) {
    for (std::uint64_t i = 0; i < kOpenBytes; ++i) victim_.memory.allow(posted.region.address_of(i), 1);
    victim_.memory.allow(posted.word.value(), 16);
  }
}

void Bench::know_secrets(const Posted& posted) {
  keep_secret(posted.region);
  searcher_.add("the address of a completion word", posted.word.value(), 8);
}

void Bench::keep_secret(const Host::Region& region) {
  searcher_.add("a virtual address", region.head.value(), 8);
  searcher_.add("the address of a page list", region.list.value(), 8);
  for (const std::uint64_t page : region.pages) {
    searcher_.add("a physical address", page, 8);
    searcher_.add("a page number", page / kPage, 7);
    // Any address within the page: its upper bits, to a byte's border.
    searcher_.add("the upper part of a physical address", page >> 16U, 6);
  }
}

void Bench::traffic() {
  Time when = us(50);
  Time outward = us(51);
  for (std::uint64_t i = 0; i < kEpochs * kPutsPerEpoch; ++i) {
    const std::uint64_t offset = (i % kPutsPerEpoch) * kSlot;
    steered_puts_.push_back(put(honest_, kVictim, when, steered_, offset, 1 + random_.below(kSlot)));
    managed_puts_.push_back(put(honest_, kVictim, when, managed_, 0, 1 + random_.below(kSlot)));
    const std::uint64_t from = random_.below(kReadable / 2);
    gets_.push_back(get(honest_, kVictim, when, readable_, from, 1 + random_.below(kReadable / 2)));
    when = when + us(static_cast<double>(random_.below(8)));
    if (options_.only_strange) continue;
    // The victim talks to the hostile node as well.
    outward = outward + us(static_cast<double>(random_.below(8)));
    outward_puts_.push_back(put(victim_, kHostile, outward, {Mailbox{random_.next()}, 0}, 0, 1 + random_.below(kSlot)));
    if (i % 3 == 0) {
      outward_gets_.push_back(get(victim_, kHostile, outward, {Mailbox{random_.next()}, 0}, 0, kAnswerBytes));
    }
  }
  for (const auto* puts : {&steered_puts_, &managed_puts_, &outward_puts_}) {
    for (const Put& made : *puts) {
      keep_secret(made.source);
      searcher_.add("the address of a put's word", made.word.value(), 8);
    }
  }
  for (const auto* gets : {&gets_, &outward_gets_}) {
    for (const Get& made : *gets) {
      keep_secret(made.into);
      searcher_.add("the address of a get's word", made.word.value(), 8);
    }
  }
}

void Bench::attack() {
  Time when = us(40);
  for (std::uint64_t i = 0; i < options_.attacks; ++i) {
    wire_.at(when, [this] {
      const Trick stranger = attacker_.random().below(2) == 0 ? Trick::unasked_answer : Trick::random_bytes;
      const Trick any = static_cast<Trick>(attacker_.random().below(static_cast<std::uint64_t>(Trick::tricks)));
      for (Frame& frame : attacker_.make(options_.only_strange ? stranger : any)) {
        wire_.inject(std::move(frame), SimContext::now());
      }
    });
    when = when + Time::from_ps(static_cast<std::int64_t>(attacker_.random().below(400'000)));
  }
}

// ---------------------------------------------------------------------------------------------------------------
// verdict

/// What the epochs of a guarded window must look like, as the honest puts alone make them.
void Bench::expect_epochs(const std::vector<Posted>& buffers, const std::vector<Put>& puts, bool is_managed) {
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const Posted& posted = buffers[epoch];
    std::uint64_t total = 0;
    for (std::uint64_t i = 0; i < kPutsPerEpoch; ++i) {
      const Put& made = puts[epoch * kPutsPerEpoch + i];
      const std::uint64_t offset = is_managed ? total : i * kSlot;
      for (std::uint64_t k = 0; k < made.length; ++k) {
        victim_.memory.expect_byte(posted.region.address_of(offset + k),
                                   honest_.memory.byte(made.source.address_of(k)));
      }
      total += made.length;
    }
    victim_.memory.expect64(posted.word.value(), posted.region.head.value());
    victim_.memory.expect64(posted.word.value() + 8, total);
  }
  // The next buffer has been retired by inc_epoch, with nothing in it: nobody has reserved or counted anything.
  victim_.memory.expect64(buffers[kEpochs].word.value(), buffers[kEpochs].region.head.value());
}

void Bench::expect_answers() {
  for (const PhysicalAddress answer : answers_) {
    if (victim_.memory.load64(answer.value()) != static_cast<std::uint64_t>(Status::ok)) wrong("a call failed");
    victim_.memory.allow(answer.value(), 16);
  }
  const auto ended = [](Host& host, PhysicalAddress word) {
    return static_cast<Outcome>(host.memory.load64(word.value()));
  };
  for (const auto* puts : {&steered_puts_, &managed_puts_}) {
    for (const Put& made : *puts) {
      const Outcome outcome = ended(honest_, made.word);
      if (outcome != Outcome::ok)
        wrong(fmt::format("an honest put ended {}", boost::describe::enum_to_string(outcome, "?")));
      honest_.memory.allow(made.word.value(), 16);
    }
  }
  for (const Get& made : gets_) {
    const Outcome outcome = ended(honest_, made.word);
    if (outcome != Outcome::ok)
      wrong(fmt::format("an honest get ended {}", boost::describe::enum_to_string(outcome, "?")));
    honest_.memory.allow(made.word.value(), 16);
    for (std::uint64_t i = 0; i < made.length; ++i) {
      honest_.memory.expect_byte(made.into.address_of(i),
                                 victim_.memory.byte(readable_buffer_.region.address_of(made.offset + i)));
    }
  }
  // What the victim has asked of the hostile node ends somehow, and writes nowhere else.
  for (const Put& made : outward_puts_) {
    if (ended(victim_, made.word) == Outcome::pending) wrong("a put to the hostile node never ended");
    victim_.memory.allow(made.word.value(), 16);
  }
  for (const Get& made : outward_gets_) {
    if (ended(victim_, made.word) == Outcome::pending) wrong("a get from the hostile node never ended");
    victim_.memory.allow(made.word.value(), 16);
    for (std::uint64_t i = 0; i < made.length; ++i) victim_.memory.allow(made.into.address_of(i), 1);
  }
}

void Bench::check_memory(const char* who, Host& host) {
  std::uint64_t first = 0;
  const std::uint64_t count = host.memory.wrong(first);
  if (count > 0) wrong(fmt::format("{} bytes of the {}'s memory are wrong, the first at {:#x}", count, who, first));
  if (host.memory.stray_accesses > 0) {
    wrong(fmt::format("{} accesses beyond the {}'s memory", host.memory.stray_accesses, who));
  }
}

int Bench::run() {
  set_up();
  traffic();
  attack();
  Time when = Time::from_us(3'000'000);
  std::vector<std::pair<PhysicalAddress, std::uint64_t>> epochs;
  for (const Secret* window : {&steered_, &managed_}) {
    for (const Opcode opcode : {Opcode::get_epoch, Opcode::inc_epoch, Opcode::get_epoch}) {
      Descriptor call;
      call.opcode = opcode;
      call.mailbox = window->mailbox;
      call.response = victim_.make_word();
      answers_.push_back(call.response);
      if (opcode == Opcode::get_epoch) epochs.emplace_back(call.response, kEpochs + epochs.size() % 2);
      later(victim_, when, call);
    }
  }
  if (options_.plants_a_leak) {
    // To show that the search would see one: an honest payload carries a physical address.
    const std::uint64_t leak = steered_buffers_.front().region.pages.front();
    const Host::Region& source = steered_puts_.front().source;
    for (std::uint64_t i = 0; i < 8; ++i) {
      const auto byte = static_cast<std::uint8_t>(leak >> (8 * i));
      if (i < source.bytes) honest_.memory.host_write(source.address_of(i), &byte, 1);
    }
  }
  sc_core::sc_start(sc_core::sc_time(3.1, sc_core::SC_SEC));
  for (const auto& [answer, epoch] : epochs) {
    const std::uint64_t told = victim_.memory.load64(answer.value() + 8);
    if (told != epoch) wrong(fmt::format("get_epoch told {} instead of {}", told, epoch));
  }
  expect_answers();
  expect_epochs(steered_buffers_, steered_puts_, false);
  expect_epochs(managed_buffers_, managed_puts_, true);
  for (const auto* buffers : {&steered_buffers_, &managed_buffers_}) {
    victim_.memory.expect64((*buffers)[kEpochs].word.value() + 8, 0);
  }
  check_memory("victim", victim_);
  check_memory("honest sender", honest_);
  if (witness_.intruders > 0) wrong(fmt::format("{} intrusions into guarded windows", witness_.intruders));
  if (searcher_.found > 0)
    wrong(fmt::format("the wire told {} secrets, the first {}", searcher_.found, searcher_.first));
  if (packets_.in_use() > 0) wrong(fmt::format("{} packets are still somewhere", packets_.in_use()));
  if (honest_.rnic.transmit().open_puts() + victim_.rnic.transmit().open_puts() > 0) wrong("puts are still open");
  fmt::print(
      "seed {}: {} frames ({} of them none), {} hostile messages bound in the open window, {} refused, {} "
      "hostile packets ignored; {} frames to the hostile node; {} frames searched for {} secrets; digest {:016x}\n",
      options_.seed, wire_.delivered, wire_.not_frames, witness_.bound, witness_.refused, witness_.ignored, to_hostile_,
      searcher_.frames, searcher_.needles(), digest_);
  return problems_;
}

void usage() {
  fmt::print(
      "usage: hostile [--seed N] [--attacks N] [--nack on|off] [--layout 0|1] [--tricks all|stranger] [--plant-leak]\n"
      "Exit status: 0 if the victim and the honest sender are as if nobody else were there, 1 if not, 2 for a mistake\n"
      "in these options.\n");
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--plant-leak") {
      options.plants_a_leak = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string value = argv[i];
    const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    if (option == "--seed" && is_number) {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (option == "--attacks" && is_number) {
      options.attacks = std::strtoull(value.c_str(), nullptr, 10);
    } else if (option == "--nack" && (value == "on" || value == "off")) {
      options.nack = value == "on";
    } else if (option == "--layout" && (value == "0" || value == "1")) {
      options.other_layout = value == "1";
    } else if (option == "--tricks" && (value == "all" || value == "stranger")) {
      options.only_strange = value == "stranger";
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace rvma::hostile

int sc_main(int argc, char** argv) {
  rvma::hostile::Options options;
  if (!rvma::hostile::parse(argc, argv, options)) {
    rvma::hostile::usage();
    return 2;
  }
  return rvma::hostile::Bench{options}.run() == 0 ? 0 : 1;
}
