#include "base/value_text.hpp"

#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <limits>

#include "base/random.hpp"

namespace rvma {
namespace {

enum class Mode : std::uint8_t { inline_, ring };
BOOST_DESCRIBE_ENUM(Mode, inline_, ring)

/// The whole complaint about `text`, or "ok".
template <class T>
std::string complaint(const ValueResult<T>& result) {
  return result ? "ok" : result.error().what + "; " + result.error().expected;
}

/// Every way to write a quantity wrongly, and that the complaint names `unit`.
template <class Parse>
void refuses_junk(Parse parse, const std::string& unit) {
  for (const std::string text :
       {"",       " ",    "-1",     "-5ns",  "+5",   "nan",   "NaN",    "inf",     "abc",   ".5us",
        "5.",     "5.us", "1..5us", "5 us",  " 5us", "5us ",  "5u",     "5parsec", "1e3us", "0x",
        "0x10us", "0xg",  "1'000",  "1,5us", "\xff", "5us\n", "5us5us", "--5"}) {
    const auto result = parse(text);
    ASSERT_FALSE(result) << "'" << text << "'";
    EXPECT_FALSE(result.error().what.empty());
    EXPECT_NE(result.error().expected.find(unit), std::string::npos) << "'" << text << "': " << result.error().expected;
  }
}

TEST(ParseSize, Reads) {
  EXPECT_EQ(*parse_size("64B"), Bytes{64});
  EXPECT_EQ(*parse_size("4KiB"), Bytes{4096});
  EXPECT_EQ(*parse_size("1MiB"), Bytes{1U << 20U});
  EXPECT_EQ(*parse_size("1kB"), Bytes{1000});
  EXPECT_EQ(*parse_size("1GB"), Bytes{1'000'000'000});
  EXPECT_EQ(*parse_size("3GiB"), Bytes{3221225472});
  EXPECT_EQ(*parse_size("0"), Bytes{0});
  EXPECT_EQ(*parse_size("007"), Bytes{7});
  EXPECT_EQ(*parse_size("0x1fF"), Bytes{511});
  EXPECT_EQ(*parse_size("1.5KiB"), Bytes{1536});
  EXPECT_EQ(*parse_size("1.500000000000000000000000000000KiB"), Bytes{1536});
  EXPECT_EQ(*parse_size("18446744073709551615"), Bytes{std::numeric_limits<std::uint64_t>::max()});
  EXPECT_EQ(*parse_size("0xffffffffffffffff"), Bytes{std::numeric_limits<std::uint64_t>::max()});
  EXPECT_EQ(*parse_size("15.5EiB"), Bytes{0xf800000000000000});
}

TEST(ParseSize, Refuses) {
  refuses_junk(parse_size, "KiB");
  EXPECT_EQ(complaint(parse_size("18446744073709551616")),
            "'18446744073709551616' is too large; expected at most 18446744073709551615");
  EXPECT_EQ(complaint(parse_size("16EiB")), "'16EiB' is too large; expected at most 18446744073709551615 bytes");
  EXPECT_NE(complaint(parse_size("0x10000000000000000")).find("too large"), std::string::npos);
  EXPECT_NE(complaint(parse_size("99999999999999999999999999999999999999999999KiB")).find("too large"),
            std::string::npos);
  EXPECT_NE(complaint(parse_size("0.5B")).find("not a whole number of bytes"), std::string::npos);
  EXPECT_NE(complaint(parse_size("1.0000000000000000000000000001KiB")).find("not a whole"), std::string::npos);
  EXPECT_NE(complaint(parse_size("4kib")).find("unknown unit 'kib'"), std::string::npos);
  EXPECT_NE(complaint(parse_size("-1")).find("negative"), std::string::npos);
  EXPECT_FALSE(parse_size("1.5")) << "a fraction needs a unit";
}

TEST(ParseTime, Reads) {
  EXPECT_EQ(*parse_time("250ns"), Time::from_ns(250));
  EXPECT_EQ(*parse_time("1.5us"), Time::from_ns(1500));
  EXPECT_EQ(*parse_time("10ms"), Time::from_us(10'000));
  EXPECT_EQ(*parse_time("800ps"), Time::from_ps(800));
  EXPECT_EQ(*parse_time("1s"), Time::from_us(1'000'000));
  EXPECT_EQ(*parse_time("0.000000000001s"), Time::from_ps(1));
  // Beyond 2^53 ps.
  EXPECT_EQ(*parse_time("9007.199254740993s"), Time::from_ps(9'007'199'254'740'993));
  EXPECT_EQ(*parse_time("9223372036854775806ps"), Time::max() - Time::from_ps(1));
}

TEST(ParseTime, Refuses) {
  refuses_junk(parse_time, "ns");
  EXPECT_EQ(complaint(parse_time("250")), "'250' has no unit; expected a time in ps, ns, us, ms or s, such as 250ns");
  EXPECT_EQ(complaint(parse_time("0.5ps")),
            "'0.5ps' is not a whole number of ps; expected a time in ps, ns, us, ms or s, such as 250ns");
  EXPECT_NE(complaint(parse_time("12cyc")).find("unknown unit 'cyc'"), std::string::npos);
  EXPECT_NE(complaint(parse_time("9223372036854775807ps")).find("too large"), std::string::npos) << "that is never";
  EXPECT_NE(complaint(parse_time("107days")).find("unknown unit"), std::string::npos);
  EXPECT_NE(complaint(parse_time("9223373s")).find("too large"), std::string::npos);
  EXPECT_NE(complaint(parse_time("9223372.036854775807s")).find("too large"), std::string::npos);
}

TEST(ParseDelayAndCycles, Read) {
  EXPECT_EQ(parse_delay("12cyc")->cycles(), Cycles{12});
  EXPECT_TRUE(parse_delay("12cyc")->in_cycles());
  EXPECT_EQ(parse_delay("1.5us")->time(), Time::from_ns(1500));
  EXPECT_FALSE(parse_delay("1.5us")->in_cycles());
  EXPECT_EQ(*parse_cycles("12cyc"), Cycles{12});
  EXPECT_EQ(*parse_cycles("12"), Cycles{12});
  EXPECT_EQ(*parse_cycles("9223372036854775807"), Cycles{std::numeric_limits<std::int64_t>::max()});
}

TEST(ParseDelayAndCycles, Refuse) {
  refuses_junk([](std::string_view text) { return text == "5us" ? parse_delay("5") : parse_delay(text); }, "cyc");
  refuses_junk(parse_cycles, "cyc");
  EXPECT_NE(complaint(parse_delay("12")).find("has no unit"), std::string::npos);
  for (const char* text : {"cyc", "1.5cyc", "-1cyc", "9223372036854775808cyc", "5ns"}) {
    EXPECT_FALSE(parse_cycles(text)) << text;
  }
  EXPECT_FALSE(parse_delay("1.5cyc"));
  EXPECT_FALSE(parse_delay("cyc"));
}

TEST(ParseRateAndFrequency, Read) {
  EXPECT_EQ(*parse_rate("400Gbps"), Rate::gbps(400));
  EXPECT_EQ(*parse_rate("50GB/s"), Rate::gbps(400));
  EXPECT_EQ(*parse_rate("25.78125Gbps"), Rate::from_bits_per_s(25'781'250'000));
  EXPECT_EQ(*parse_rate("1Tbps"), Rate::gbps(1000));
  EXPECT_EQ(*parse_rate("0.125B/s"), Rate::from_bits_per_s(1));
  EXPECT_EQ(*parse_frequency("1GHz"), Frequency::mhz(1000));
  EXPECT_EQ(*parse_frequency("322.265625MHz"), Frequency::from_uhz(322'265'625'000'000));
  EXPECT_EQ(*parse_frequency("0.000001Hz"), Frequency::from_uhz(1));
}

TEST(ParseRateAndFrequency, Refuse) {
  refuses_junk(parse_rate, "GB/s");
  refuses_junk(parse_frequency, "GHz");
  EXPECT_EQ(complaint(parse_frequency("1000000000")),
            "'1000000000' has no unit; expected a clock in Hz, kHz, MHz or GHz, such as 1GHz");
  EXPECT_NE(complaint(parse_rate("400")).find("has no unit"), std::string::npos);
  EXPECT_NE(complaint(parse_rate("0.5bps")).find("whole number of bits a second"), std::string::npos);
  EXPECT_NE(complaint(parse_rate("18446745Tbps")).find("too large"), std::string::npos);
  EXPECT_NE(complaint(parse_frequency("18446.744073709551616GHz")).find("too large"), std::string::npos);
  EXPECT_EQ(parse_frequency("18446.744073709551615GHz")->uhz(), std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseInteger, ReadsAndRefuses) {
  EXPECT_EQ(*parse_integer("0xbeef000000000000", ~0ULL, "mailbox"), 0xbeef000000000000ULL);
  EXPECT_EQ(*parse_integer("42", 42, "rank"), 42U);
  EXPECT_EQ(complaint(parse_integer("43", 42, "rank")), "'43' is too large; expected at most 42");
  EXPECT_EQ(complaint(parse_integer("x", 42, "a rank")),
            "'x' is not a number; expected a rank: decimal or 0x hex, at most 42");
  EXPECT_FALSE(parse_integer("1.0", 42, "rank"));
  EXPECT_FALSE(parse_integer("1e1", 42, "rank"));
  EXPECT_FALSE(parse_integer("", 42, "rank"));
  EXPECT_FALSE(ValueText<std::uint8_t>::parse("256"));
  EXPECT_EQ(*ValueText<std::uint8_t>::parse("0xff"), 255);
}

TEST(ParseProbability, Reads) {
  EXPECT_EQ(parse_probability("0.05")->ppb(), 50'000'000U);
  EXPECT_EQ(parse_probability("1e-3")->ppb(), 1'000'000U);
  EXPECT_EQ(parse_probability("5%")->ppb(), 50'000'000U);
  EXPECT_EQ(parse_probability("1")->ppb(), 1'000'000'000U);
  EXPECT_EQ(parse_probability("1.000")->ppb(), 1'000'000'000U);
  EXPECT_EQ(parse_probability("100%")->ppb(), 1'000'000'000U);
  EXPECT_EQ(parse_probability("0")->ppb(), 0U);
  EXPECT_EQ(parse_probability("0e999")->ppb(), 0U);
  EXPECT_EQ(parse_probability("1E-9")->ppb(), 1U);
  EXPECT_EQ(parse_probability("0.000000001")->ppb(), 1U);
  EXPECT_EQ(parse_probability("1000e-3")->ppb(), 1'000'000'000U);
  EXPECT_EQ(parse_probability("0.1e+1")->ppb(), 1'000'000'000U);
}

TEST(ParseProbability, Refuses) {
  for (const char* text : {"", "-0.1", "nan", "1.1", "2", "101%", "1e1", "1e-10", "0.0000000001", "0.1%x", "%", "1.",
                           ".5", "1e99999999", "1000000000000000000000000000000", "0.05 ", "1e-99999999999999999999"}) {
    const auto result = parse_probability(text);
    EXPECT_FALSE(result) << text;
  }
  EXPECT_NE(complaint(parse_probability("1e-10")).find("finer than 1e-9"), std::string::npos);
  EXPECT_NE(complaint(parse_probability("junk")).find("5%"), std::string::npos);
}

/// What is printed reads back unchanged.
template <class T>
void round_trip(const T& value) {
  const std::string text = ValueText<T>::print(value);
  const auto back = ValueText<T>::parse(text);
  ASSERT_TRUE(back) << text << ": " << complaint(back);
  EXPECT_EQ(ValueText<T>::print(*back), text);
  if constexpr (!std::is_same_v<T, Delay>) {
    EXPECT_TRUE(*back == value) << text;
  }
  const auto from_json = ValueText<T>::from_json(ValueText<T>::to_json(value));
  ASSERT_TRUE(from_json) << text;
  EXPECT_EQ(ValueText<T>::print(*from_json), text);
}

TEST(ValueText, RoundTripsAtRandom) {
  const std::uint64_t seed = testing::UnitTest::GetInstance()->random_seed() + 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t any = random.next() >> random.below(64);
    const auto positive = static_cast<std::int64_t>(any >> 1U);
    if (positive == std::numeric_limits<std::int64_t>::max()) continue;
    round_trip(Bytes{any});
    round_trip(Bytes{any * 1000});
    round_trip(Bytes{any << 10U});
    round_trip(Time::from_ps(positive));
    round_trip(Delay{Time::from_ps(positive)});
    round_trip(Delay{Cycles{positive}});
    round_trip(Cycles{positive});
    round_trip(Rate::from_bits_per_s(any));
    round_trip(Frequency::from_uhz(any));
    round_trip(Probability::from_ppb(any % 1'000'000'001));
    round_trip(any);
    round_trip(static_cast<std::uint16_t>(any));
  }
  round_trip(true);
  round_trip(false);
  round_trip(Mode::inline_);
  round_trip(Mode::ring);
}

TEST(ValueText, BooleansAndEnumerators) {
  EXPECT_TRUE(*ValueText<bool>::parse("on"));
  EXPECT_FALSE(*ValueText<bool>::parse("off"));
  EXPECT_TRUE(*ValueText<bool>::from_json(true));
  EXPECT_FALSE(ValueText<bool>::parse("yes"));
  EXPECT_FALSE(ValueText<bool>::from_json(nullptr));
  EXPECT_EQ(ValueText<Mode>::type_name(), "one of inline ring");
  EXPECT_EQ(*ValueText<Mode>::parse("inline"), Mode::inline_);
  EXPECT_EQ(complaint(ValueText<Mode>::parse("rng")), "'rng' is unknown; did you mean 'ring'?");
  EXPECT_EQ(complaint(ValueText<Mode>::parse("quantum")), "'quantum' is unknown; expected one of inline, ring");
  EXPECT_EQ(complaint(ValueText<Mode>::parse("")), "the value is empty; expected one of inline, ring");
}

TEST(ValueText, JsonOfTheWrongKind) {
  EXPECT_EQ(*ValueText<Bytes>::from_json(64), Bytes{64});
  EXPECT_EQ(*ValueText<std::uint64_t>::from_json(18446744073709551615ULL), 18446744073709551615ULL);
  EXPECT_FALSE(ValueText<Bytes>::from_json(-1));
  EXPECT_NE(complaint(ValueText<Bytes>::from_json(1.5)).find("not exact"), std::string::npos);
  EXPECT_NE(complaint(ValueText<Time>::from_json(true)).find("expected time"), std::string::npos);
  EXPECT_FALSE(ValueText<Time>::from_json(nullptr));
  EXPECT_FALSE(ValueText<Time>::from_json(boost::json::array{}));
  EXPECT_FALSE(ValueText<Time>::from_json(boost::json::object{}));
}

}  // namespace
}  // namespace rvma
