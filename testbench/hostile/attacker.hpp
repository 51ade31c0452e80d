/// \file
/// The hostile sender: makes frames, from nothing or from what it has seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "hosts.hpp"

namespace rvma::hostile {

/// A mailbox and the key that opens it: what the attacker must not know.
struct Secret {
  Mailbox mailbox;
  std::uint32_t key = 0;
};

enum class Trick : std::uint8_t {
  random_bytes,
  random_fields,
  flipped_bits,    ///< of a real frame; its checks fail
  mutated_fields,  ///< of a real frame; its checks are right
  wrong_key,
  stale_message,
  wrapped_offset,  ///< into the open window
  lying_length,    ///< two packets of one message that disagree
  wrong_incarnation,
  wrong_cutting,
  forbidden_get,
  unasked_answer,  ///< a put to a mailbox that nobody has
  lying_answer,    ///< to a get of the victim
  forged_ack,
  replay,      ///< a real frame once more, from its own source
  honest_put,  ///< into the open window
  tricks
};
std::string name_of(Trick trick);

class Attacker {
 public:
  /// `open`: a mailbox without a key. The keys of `secrets` it will not use, should it hit one by chance.
  Attacker(std::uint64_t seed, std::uint64_t mtu_bytes, Mailbox open, std::vector<Secret> secrets);

  /// Everything that passes on the wire.
  void overhear(const Frame& frame);
  /// What is sent to the hostile node itself.
  void receive(const Frame& frame);
  std::vector<Frame> make(Trick trick);
  Random& random() { return random_; }

 private:
  DecodedFrame data_frame(Mailbox mailbox, std::uint32_t key, std::uint64_t offset, std::uint64_t length);
  DecodedFrame random_frame();
  DecodedFrame forged_ack();
  void follow(const TransportHeader& header);
  std::uint32_t odd_age(std::uint32_t own);
  void cut(DecodedFrame& frame, std::uint32_t index) const;
  void mutate(DecodedFrame& frame);
  Frame finish(DecodedFrame frame);
  Frame overheard();
  const Secret& some_secret() { return secrets_[random_.below(secrets_.size())]; }
  std::uint64_t odd_number();

  Random random_;
  std::uint64_t mtu_;
  Mailbox open_;
  std::vector<Secret> secrets_;
  std::vector<Frame> overheard_;
  std::vector<DataHeader> asked_;  ///< requests of the victim's gets
  std::vector<std::uint8_t> noise_;
  std::uint32_t incarnation_ = 1;
  std::uint32_t generation_ = 1;
  std::uint32_t sequence_ = 0;
  std::uint32_t message_ = 0;
};

}  // namespace rvma::hostile
