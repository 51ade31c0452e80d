// Arbitrary text as a configuration: no crash, every error at a place within the text, and what was accepted prints to
// text that reads back as the same values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/config.hpp"

namespace {

using namespace rvma;

enum class Shape : std::uint8_t { automatic, star, static_ };
BOOST_DESCRIBE_ENUM(Shape, automatic, star, static_)

/// A key of every type.
struct Inner {
  Key<Bytes> size{Bytes{64}, {Bytes{1}, Bytes::mib(1)}, "a size"};
  Key<Time> time{Time::from_ns(1), "a time"};
  Key<Delay> delay{Delay{Cycles{3}}, "a delay"};
  Key<Cycles> cycles{Cycles{2}, {Cycles{1}, Cycles{9}}, "cycles"};
  Key<Rate> rate{Rate::gbps(400), "a rate"};
  BOOST_DESCRIBE_CLASS(Inner, (), (size, time, delay, cycles, rate), (), ())
};

struct Root {
  Key<Frequency> clock{Frequency::mhz(1000), "a clock"};
  Key<Probability> drop{Probability{}, "a probability"};
  Inner inner;
  Key<std::uint16_t> small{1, "a small integer"};
  Key<std::uint64_t> large{1, "a large integer"};
  Key<bool> flag{true, "a flag"};
  Inner switch_;
  Key<Shape> shape{Shape::automatic, "one of several"};
  BOOST_DESCRIBE_CLASS(Root, (), (clock, drop, inner, small, large, flag, switch_, shape), (), ())
};

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "fuzz_config: " << what << '\n';
  std::abort();
}

std::string printed(Root& root) {
  std::ostringstream out;
  print_config(out, keys_of(root));
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);

  Root first;
  ErrorList errors;
  load_config_text(text, "fuzz.json", keys_of(first), errors);
  for (const Error& error : errors.shown()) {
    const bool within = error.position.line >= 1 && error.position.column >= 1 && error.position.column <= size + 1 &&
                        error.position.line <= size + 1;
    require(within, "an error stands outside the text");
    require(!error.what.empty(), "an error says nothing");
  }

  // Whatever was set is valid, also beside errors.
  const std::string once = printed(first);
  Root second;
  ErrorList none;
  load_config_text(once, "printed.json", keys_of(second), none);
  if (!none.empty()) none.print(std::cerr);
  require(none.empty(), "a printed configuration does not load");
  require(printed(second) == once, "a printed configuration reads back as another");

  // The same bytes as a command-line setting.
  ErrorList set_errors;
  apply_set(text, keys_of(second), set_errors);
  apply_set("inner.size=" + text, keys_of(second), set_errors);
  apply_set("inner.delay=" + text, keys_of(second), set_errors);
  apply_set("drop=" + text, keys_of(second), set_errors);
  return 0;
}
