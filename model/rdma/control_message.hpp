/// \file
/// What the software of two ranks says to each other beside the data: connection set-up, the exchange that gives a
/// sender an address and a key, and the news of completion. One 64-byte send each.
#pragma once

#include <array>
#include <boost/describe/enum.hpp>
#include <cstdint>

#include "base/outcome.hpp"

namespace rvma {

inline constexpr std::uint32_t kControlBytes = 64;
using ControlBytes = std::array<std::uint8_t, kControlBytes>;

enum class ControlKind : std::uint8_t {
  connect_request = 1,  ///< here is my end of the queue pair; bring up yours
  connect_reply,        ///< mine is up as well
  connect_ready,        ///< so is the connection
  put_request,          ///< may I write `length` bytes at `offset` of the mailbox's active buffer?
  put_grant,            ///< yes: at `address`, with `key`
  get_request,          ///< may I read them?
  get_grant,            ///< yes: at `address`, with `key`
  refusal,              ///< no, for a reason; `ok`: there was nothing to write, and it counts
  written,              ///< what `ticket` granted is written and acknowledged
  advertisement,        ///< the next buffer of the mailbox is yours: at `offset`, `length` bytes, with `key`
  use_advertised,       ///< to a put_request: not granted, because buffers are advertised to you
  revoke,               ///< use no more buffers of the mailbox that were advertised in this era
  revoked,              ///< I do not; I have used `length` of them, and told so, or will
  reminder,             ///< what has become of my request?
  forgotten,            ///< to a reminder: I have nothing to say to it any more
  given_up              ///< my put `message` has ended; what it has not written it never will
};
BOOST_DESCRIBE_ENUM(ControlKind, connect_request, connect_reply, connect_ready, put_request, put_grant, get_request,
                    get_grant, refusal, written, advertisement, use_advertised, revoke, revoked, reminder, forgotten,
                    given_up)

struct ControlMessage {
  ControlKind kind = ControlKind::connect_request;
  Outcome outcome = Outcome::pending;  ///< of a refusal
  bool is_managed = false;             ///< advertisements: the put's offset does not count
  bool does_not_suit = false;          ///< put_request: what is advertised does not suit it
  std::uint32_t rank = 0;              ///< of the sender
  std::uint32_t request = 0;           ///< the asker's number of its request, in requests and what refers to them
  std::uint32_t ticket = 0;            ///< the granter's number of its grant
  std::uint32_t key = 0;               ///< requests: of the mailbox; grants, advertisements: of the region
  /// Requests and what refers to them: number of the message that the put is; advertisements: the mailbox's key.
  std::uint32_t message = 0;
  std::uint64_t mailbox = 0;  ///< grants: the address
  std::uint64_t offset = 0;   ///< bytes
  std::uint64_t length = 0;   ///< bytes
  std::uint64_t least = 0;    ///< advertisements: bytes that a message must have to fill the buffer
  std::uint32_t era = 0;      ///< of advertisements of a mailbox: ends when they are revoked
  std::uint32_t sequence =
      0;  ///< of an advertisement in its era, from 0; revocations, news: how often it was said before
};

ControlBytes encode(const ControlMessage& message);
ControlMessage decode_control(const ControlBytes& bytes);

}  // namespace rvma
