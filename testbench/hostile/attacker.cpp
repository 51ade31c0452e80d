#include "attacker.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace rvma::hostile {

namespace {
constexpr std::size_t kRemembered = 256;
constexpr std::size_t kMostNoise = 2048;  ///< bytes of a frame, or of a payload
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
}  // namespace

std::string name_of(Trick trick) {
  static const std::array<const char*, static_cast<std::size_t>(Trick::tricks)> names{
      "random bytes",      "random fields", "flipped bits",   "mutated fields",
      "wrong key",         "stale message", "wrapped offset", "lying length",
      "wrong incarnation", "wrong cutting", "forbidden get",  "unasked answer",
      "lying answer",      "forged ack",    "replay",         "honest put"};
  return names.at(static_cast<std::size_t>(trick));
}

Attacker::Attacker(std::uint64_t seed, std::uint64_t mtu_bytes, Mailbox open, std::vector<Secret> secrets)
    : random_(seed, "attacker"), mtu_(mtu_bytes), open_(open), secrets_(std::move(secrets)), noise_(kMostNoise) {
  for (std::uint8_t& byte : noise_) byte = static_cast<std::uint8_t>(random_.next());
}

void Attacker::overhear(const Frame& frame) {
  if (overheard_.size() < kRemembered) {
    overheard_.push_back(frame);
  } else {
    overheard_[random_.below(kRemembered)] = frame;
  }
}

void Attacker::receive(const Frame& frame) {
  const auto decoded = decode_frame(frame.data(), frame.size());
  if (decoded && decoded->transport.type == PacketType::data && decoded->data.is_get) asked_.push_back(decoded->data);
}

Frame Attacker::overheard() { return overheard_.empty() ? Frame(64) : overheard_[random_.below(overheard_.size())]; }

std::uint64_t Attacker::odd_number() {
  switch (random_.below(5)) {
    case 0:
      return random_.next();
    case 1:
      return kMax - random_.below(3 * mtu_);
    case 2:
      return random_.below(3 * mtu_);
    case 3:
      return std::uint64_t{1} << random_.below(64);
    default:
      return 0;
  }
}

/// The fabric guarantees the source, and a key that fits by chance is no trick.
Frame Attacker::finish(DecodedFrame frame) {
  frame.transport.source = kHostile;
  frame.transport.destination = kVictim;
  for (const Secret& secret : secrets_) {
    if (frame.data.mailbox == secret.mailbox && frame.data.key == secret.key) ++frame.data.key;
  }
  if (frame.data.payload_length > 0 && frame.payload == nullptr) frame.payload = noise_.data();
  frame.data.payload_length = std::min<std::uint16_t>(frame.data.payload_length, kMostNoise);
  follow(frame.transport);
  Frame bytes;
  encode_frame(frame, bytes);
  return bytes;
}

/// A packet of a newer incarnation or generation makes all older ones stale: the attacker goes on with the newer one.
void Attacker::follow(const TransportHeader& header) {
  const bool is_data = header.type == PacketType::data;
  const bool is_heard = header.destination_incarnation == 0 || header.destination_incarnation == 1;
  const bool is_newer = header.source_incarnation != incarnation_ ? header.source_incarnation > incarnation_
                                                                  : header.generation > generation_;
  if (!is_data || !is_heard || !is_newer) return;
  incarnation_ = header.source_incarnation;
  generation_ = header.generation;
  sequence_ = message_ = 0;
}

/// Mostly its own; now and then one that is a little newer, or any older one.
std::uint32_t Attacker::odd_age(std::uint32_t own) {
  const std::uint64_t draw = random_.below(60);
  if (draw == 0) return own + 1 + static_cast<std::uint32_t>(random_.below(1000));
  return draw < 6 ? static_cast<std::uint32_t>(random_.below(own + 1)) : own;
}

void Attacker::cut(DecodedFrame& frame, std::uint32_t index) const {
  frame.data.packet_index = index;
  const std::uint64_t start = index * mtu_;
  const std::uint64_t left = frame.data.message_length - std::min(frame.data.message_length, start);
  frame.data.payload_length = static_cast<std::uint16_t>(std::min(mtu_, left));
}

/// The next message of the attacker's own context, its first packet.
DecodedFrame Attacker::data_frame(Mailbox mailbox, std::uint32_t key, std::uint64_t offset, std::uint64_t length) {
  DecodedFrame frame;
  frame.transport.source_incarnation = incarnation_;
  frame.transport.generation = generation_;
  frame.transport.sequence = sequence_++;
  frame.data.mailbox = mailbox;
  frame.data.key = key;
  frame.data.message = MessageId{message_++};
  frame.data.open_span = static_cast<std::uint16_t>(random_.below(std::min(message_, 64U)));
  frame.data.offset = offset;
  frame.data.message_length = length;
  cut(frame, 0);
  return frame;
}

DecodedFrame Attacker::random_frame() {
  DecodedFrame frame;
  TransportHeader& transport = frame.transport;
  transport.type = random_.below(3) == 0 ? PacketType::acknowledgement : PacketType::data;
  if (transport.type == PacketType::acknowledgement) return forged_ack();
  transport.source_incarnation = odd_age(incarnation_);
  transport.destination_incarnation = random_.below(4) == 0 ? static_cast<std::uint32_t>(odd_number()) : 1;
  transport.generation = odd_age(generation_);
  transport.sequence = random_.below(3) == 0 ? static_cast<std::uint32_t>(odd_number()) : sequence_++;
  frame.data.destination_pid = Pid{static_cast<std::uint16_t>(odd_number())};
  frame.data.source_pid = Pid{static_cast<std::uint16_t>(odd_number())};
  frame.data.mailbox = random_.below(2) == 0 ? Mailbox{odd_number()} : some_secret().mailbox;
  frame.data.key = static_cast<std::uint32_t>(odd_number());
  frame.data.message = MessageId{random_.below(3) == 0 ? static_cast<std::uint32_t>(odd_number()) : message_++};
  frame.data.open_span = random_.below(3) == 0 ? static_cast<std::uint16_t>(odd_number()) : std::uint16_t{0};
  frame.data.message_length = odd_number();
  frame.data.offset = odd_number();
  frame.data.packet_index = static_cast<std::uint32_t>(odd_number());
  frame.data.payload_length = static_cast<std::uint16_t>(random_.below(kMostNoise));
  return frame;
}

DecodedFrame Attacker::forged_ack() {
  DecodedFrame frame;
  frame.transport.type = PacketType::acknowledgement;
  frame.transport.source_incarnation = random_.below(3) == 0 ? static_cast<std::uint32_t>(odd_number()) : incarnation_;
  frame.transport.destination_incarnation = random_.below(3) == 0 ? static_cast<std::uint32_t>(odd_number()) : 1;
  frame.transport.generation = static_cast<std::uint32_t>(random_.below(4));
  // Near what the victim may have sent, or anywhere.
  const bool is_near = random_.below(2) == 0;
  frame.ack.cumulative = static_cast<std::uint32_t>(is_near ? random_.below(40) : odd_number());
  frame.ack.outcomes_from = MessageId{static_cast<std::uint32_t>(is_near ? random_.below(20) : odd_number())};
  for (std::uint64_t i = random_.below(17); i > 0; --i) frame.ack.selective.push_back(random_.next());
  for (std::uint64_t i = random_.below(64); i > 0; --i) {
    frame.ack.outcomes.push_back(static_cast<Outcome>(random_.below(static_cast<std::uint64_t>(Outcome::busy) + 1)));
  }
  return frame;
}

void Attacker::mutate(DecodedFrame& frame) {
  DataHeader& data = frame.data;
  for (std::uint64_t changes = 1 + random_.below(2); changes > 0; --changes) {
    switch (random_.below(9)) {
      case 0:
        data.mailbox = Mailbox{data.mailbox.value() ^ (std::uint64_t{1} << random_.below(64))};
        break;
      case 1:
        data.offset = odd_number();
        break;
      case 2:
        data.message_length = odd_number();
        break;
      case 3:
        data.packet_index = static_cast<std::uint32_t>(odd_number());
        break;
      case 4:
        data.message = MessageId{data.message.value() + static_cast<std::uint32_t>(random_.below(7)) - 3};
        break;
      case 5:
        frame.transport.sequence += static_cast<std::uint32_t>(random_.below(7)) - 3;
        break;
      case 6:
        data.open_span = static_cast<std::uint16_t>(odd_number());
        break;
      case 7:
        frame.transport.generation = odd_age(generation_);
        break;
      default:
        data.destination_pid = Pid{static_cast<std::uint16_t>(random_.below(3))};
        break;
    }
  }
}

std::vector<Frame> Attacker::make(Trick trick) {
  std::vector<Frame> frames;
  const std::uint64_t length = random_.below(4 * mtu_);
  // An invented message id or number may have closed all the attacker's own: then it begins anew.
  if (random_.below(30) == 0) {
    ++generation_;
    sequence_ = message_ = 0;
  }
  switch (trick) {
    case Trick::random_bytes: {
      Frame bytes(random_.below(kMostNoise));
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_.next());
      frames.push_back(std::move(bytes));
      break;
    }
    case Trick::random_fields:
      frames.push_back(finish(random_frame()));
      break;
    case Trick::flipped_bits: {
      Frame bytes = overheard();
      for (std::uint64_t flips = 1 + random_.below(3); flips > 0; --flips) {
        bytes[random_.below(bytes.size())] ^= static_cast<std::uint8_t>(1U << random_.below(8));
      }
      // A frame that still decodes is one whose flips took each other back: not its sender's business.
      if (!decode_frame(bytes.data(), bytes.size())) frames.push_back(std::move(bytes));
      break;
    }
    case Trick::mutated_fields: {
      const Frame bytes = overheard();
      const auto decoded = decode_frame(bytes.data(), bytes.size());
      if (!decoded || decoded->transport.type != PacketType::data) break;
      DecodedFrame frame = *decoded;
      frame.transport.source_incarnation = incarnation_;
      frame.transport.generation = generation_;
      frame.transport.sequence = sequence_++;
      frame.data.message = MessageId{message_++};
      frame.data.open_span = 0;
      mutate(frame);
      frames.push_back(finish(frame));
      break;
    }
    case Trick::wrong_key: {
      const Secret& secret = some_secret();
      const std::uint32_t key = random_.below(2) == 0 ? 0 : secret.key ^ (1U << random_.below(32));
      frames.push_back(finish(data_frame(secret.mailbox, key, random_.below(mtu_), length)));
      break;
    }
    case Trick::stale_message: {
      DecodedFrame frame = data_frame(open_, 0, 0, length);
      frame.data.message = MessageId{frame.data.message.value() - static_cast<std::uint32_t>(random_.below(200))};
      frames.push_back(finish(frame));
      break;
    }
    case Trick::wrapped_offset: {
      DecodedFrame frame = data_frame(open_, 0, kMax - random_.below(2 * mtu_), length + 1);
      if (random_.below(2) == 0) std::swap(frame.data.offset, frame.data.message_length);
      cut(frame, 0);
      frames.push_back(finish(frame));
      break;
    }
    case Trick::lying_length: {
      DecodedFrame frame = data_frame(open_, 0, 0, 3 * mtu_);
      frames.push_back(finish(frame));
      mutate(frame);
      frame.transport.sequence = sequence_++;
      cut(frame, static_cast<std::uint32_t>(random_.below(12)));
      frames.push_back(finish(frame));
      break;
    }
    case Trick::wrong_incarnation: {
      DecodedFrame frame = data_frame(some_secret().mailbox, 0, 0, length);
      frame.transport.source_incarnation = odd_age(incarnation_);
      frame.transport.generation = odd_age(generation_);
      if (random_.below(2) == 0) frame.transport.destination_incarnation = static_cast<std::uint32_t>(odd_number());
      frames.push_back(finish(frame));
      break;
    }
    case Trick::wrong_cutting: {
      DecodedFrame frame = data_frame(open_, 0, 0, length);
      frame.data.payload_length = static_cast<std::uint16_t>(random_.below(kMostNoise));
      frame.data.packet_index = static_cast<std::uint32_t>(odd_number());
      frames.push_back(finish(frame));
      break;
    }
    case Trick::forbidden_get: {
      DecodedFrame frame = data_frame(random_.below(3) == 0 ? open_ : some_secret().mailbox, 0, random_.below(64), 0);
      frame.data.key = static_cast<std::uint32_t>(odd_number());
      frame.data.is_get = true;
      frame.data.ask = {random_.below(mtu_), Mailbox{random_.next()}, 1};
      frames.push_back(finish(frame));
      break;
    }
    case Trick::unasked_answer:
      frames.push_back(
          finish(data_frame(Mailbox{random_.next()}, static_cast<std::uint32_t>(random_.next()), 0, length)));
      break;
    case Trick::lying_answer: {
      if (asked_.empty()) break;
      const DataHeader& asked = asked_[random_.below(asked_.size())];
      const std::uint64_t told = random_.below(2) == 0 ? asked.ask.length + odd_number() : asked.ask.length / 2;
      frames.push_back(finish(data_frame(asked.ask.mailbox, asked.ask.key, odd_number(), told)));
      break;
    }
    case Trick::forged_ack:
      frames.push_back(finish(forged_ack()));
      break;
    case Trick::replay:
      frames.push_back(overheard());
      break;
    case Trick::honest_put: {
      const DecodedFrame frame = data_frame(open_, 0, random_.below(mtu_), mtu_ + random_.below(mtu_));
      DecodedFrame second = frame;
      second.transport.sequence = sequence_++;
      cut(second, 1);
      if (random_.below(4) != 0) frames.push_back(finish(second));
      frames.push_back(finish(frame));
      break;
    }
    case Trick::tricks:
      break;
  }
  return frames;
}

}  // namespace rvma::hostile
