#include "base/config.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/random.hpp"

namespace rvma {
namespace {

enum class Shape : std::uint8_t { automatic, star, static_ };
BOOST_DESCRIBE_ENUM(Shape, automatic, star, static_)

struct Table {
  Key<std::uint32_t> rows{512, {4, 1024}, "rows of a bank"};
  Key<Cycles> latency{Cycles{2}, {Cycles{1}, Cycles{3}}, "cycles to the answer"};
  BOOST_DESCRIBE_CLASS(Table, (), (rows, latency), (), ())
};

struct Nic {
  Key<Frequency> clock{Frequency::mhz(1000), {Frequency::mhz(1), Frequency::mhz(2000)}, "the clock"};
  Key<Bytes> mtu{Bytes::kib(4), {Bytes{64}, Bytes::kib(32)}, "payload of a packet"};
  Key<bool> nack{true, "tell | refuse"};
  Table table;
  BOOST_DESCRIBE_CLASS(Nic, (), (clock, mtu, nack, table), (), ())
};

struct Root {
  Nic nic;
  Key<Time> limit{Time::from_us(1), "a time"};
  Key<Delay> delay{Delay{Cycles{3}}, "a delay"};
  Key<Rate> rate{Rate::gbps(400), "a rate"};
  Key<Probability> drop{Probability{}, "a probability"};
  Key<std::uint64_t> seed{1, "a seed"};
  Key<Shape> shape{Shape::automatic, "one of several"};
  Table switch_;
  BOOST_DESCRIBE_CLASS(Root, (), (nic, limit, delay, rate, drop, seed, shape, switch_), (), ())
};

std::string text_of(const ErrorList& errors) {
  std::ostringstream out;
  errors.print(out);
  return out.str();
}

/// Loads `text` into `root` and returns the complaints.
std::string load(Root& root, std::string_view text) {
  ErrorList errors;
  load_config_text(text, "c.json", keys_of(root), errors);
  return text_of(errors);
}
std::string load(std::string_view text) {
  Root root;
  return load(root, text);
}

std::string set(Root& root, std::string_view assignment) {
  ErrorList errors;
  apply_set(assignment, keys_of(root), errors);
  return text_of(errors);
}
std::string set(std::string_view assignment) {
  Root root;
  return set(root, assignment);
}

std::string printed(Root& root) {
  std::ostringstream out;
  print_config(out, keys_of(root));
  return out.str();
}

TEST(Config, PathsInDeclarationOrder) {
  Root root;
  std::string paths;
  for (const KeyRef& ref : keys_of(root)) paths += ref.path + " ";
  EXPECT_EQ(paths,
            "nic.clock nic.mtu nic.nack nic.table.rows nic.table.latency limit delay rate drop seed shape switch.rows "
            "switch.latency ");
}

TEST(ConfigLoad, EveryType) {
  Root root;
  EXPECT_EQ(load(root, R"(// a comment
{
  "nic": {"clock": "322.265625MHz", "mtu": 1024, "nack": false, "table": {"rows": "0x10", "latency": 3,},},
  /* another */ "limit": "1.5us", "delay": "7cyc", "rate": "50GB/s", "drop": 1e-3,
  "seed": 18446744073709551615,
  "shape": "static",
  "switch": {"rows": 8}
} // the end)"),
            "");
  EXPECT_EQ(root.nic.clock.get(), Frequency::from_uhz(322'265'625'000'000));
  EXPECT_EQ(root.nic.mtu.get(), Bytes{1024});
  EXPECT_FALSE(root.nic.nack);
  EXPECT_EQ(root.nic.table.rows, 16U);
  EXPECT_EQ(root.nic.table.latency.get(), Cycles{3});
  EXPECT_EQ(root.limit.get(), Time::from_ns(1500));
  EXPECT_EQ(root.delay->cycles(), Cycles{7});
  EXPECT_EQ(root.rate.get(), Rate::gbps(400));
  EXPECT_EQ(root.drop->ppb(), 1'000'000U);
  EXPECT_EQ(root.seed, 18446744073709551615ULL);
  EXPECT_EQ(root.shape, Shape::static_);
  EXPECT_EQ(root.switch_.rows, 8U);
  EXPECT_TRUE(root.nic.mtu.set_by_user());
  EXPECT_FALSE(root.switch_.latency.set_by_user());
}

TEST(ConfigLoad, FormsThatAreFine) {
  for (const char* text : {"{}", "{} // end", "{}//", "/**/{}", "\xef\xbb\xbf{}", " {\r\n}\r\n", "{\"nic\":{}}",
                           "{\"nic\":{\"table\":{},},}", "// x\n{}\n// y\n"}) {
    EXPECT_EQ(load(text), "") << text;
  }
  Root root;
  EXPECT_EQ(load(root, R"({"n\u0069c": {"mt\u0075": "1\u004biB"}})"), "");
  EXPECT_EQ(root.nic.mtu.get(), Bytes{1024});
}

TEST(ConfigLoad, UnknownKeys) {
  EXPECT_EQ(load("{\n  \"nic\": {\n    \"mtus\": 5\n  }\n}"),
            "c.json:3:5: error: unknown key 'nic.mtus'; did you mean 'nic.mtu'?\n");
  EXPECT_EQ(load(R"({"nci": {"mtu": 5, "x": {"y": [1, {}]}}, "limit": 5})"),
            "c.json:1:2: error: unknown key 'nci'; did you mean 'nic'?\n"
            "c.json:1:51: error: limit: '5' has no unit; expected a time in ps, ns, us, ms or s, such as 250ns\n");
  EXPECT_EQ(load(R"({"mtu": 5})"), "c.json:1:2: error: unknown key 'mtu'; did you mean 'nic.mtu'?\n");
  EXPECT_EQ(load(R"({"nic.mtu": 5})"),
            "c.json:1:2: error: unknown key 'nic.mtu'; expected a section inside a section for each dot\n");
  EXPECT_EQ(load(R"({"nic": {"table": {"zzz": 5}}})"),
            "c.json:1:20: error: unknown key 'nic.table.zzz'; expected one of rows, latency\n");
  EXPECT_EQ(load(R"({"nic": {"": 5}})"),
            "c.json:1:10: error: unknown key 'nic.'; expected one of clock, mtu, nack, table\n");
}

TEST(ConfigLoad, DuplicateKeys) {
  EXPECT_EQ(load("{\"seed\": 1,\n \"seed\": 2}"), "c.json:2:2: error: key 'seed' is given twice; first on line 1\n");
  EXPECT_EQ(load("{\"nic\": {},\n\n \"nic\": {\"mtu\": \"bad\"}}"),
            "c.json:3:2: error: key 'nic' is given twice; first on line 1\n");
  EXPECT_EQ(load(R"({"seed": 1, "s\u0065ed": 2})"), "c.json:1:13: error: key 'seed' is given twice; first on line 1\n");
}

TEST(ConfigLoad, ValuesOutOfPlace) {
  EXPECT_EQ(load(R"({"nic": 5})"),
            "c.json:1:9: error: nic: a value stands where a section belongs; expected { } with clock, mtu, nack, table "
            "inside\n");
  for (const char* value : {"\"x\"", "[1, [2]]", "true", "null", "1e400"}) {
    const std::string complaint = load("{\"nic\": " + std::string{value} + "}");
    EXPECT_EQ(complaint.rfind("c.json:1:9: error: nic: a value stands where a section belongs", 0), 0U) << complaint;
  }
  EXPECT_EQ(load(R"({"limit": {"a": {"b": 1}}})"),
            "c.json:1:11: error: limit: a section stands where one value belongs; expected time\n");
  EXPECT_EQ(load(R"({"limit": [1, {"a": "b"}]})"),
            "c.json:1:11: error: limit: a list stands where one value belongs; expected time\n");
  EXPECT_EQ(load(R"({"limit": [{"a": 1, "a": true}, null, "x"], "seed": 5x})").find("c.json:1:21: error: name 'a' is"),
            0U);
  EXPECT_EQ(load(R"({"limit": true})"), "c.json:1:11: error: limit: true is not a value of this key; expected time\n");
  EXPECT_EQ(load(R"({"limit": null})"), "c.json:1:11: error: limit: null is not a value; expected time\n");
  EXPECT_EQ(load(R"([{"nic": 1}])"),
            "c.json:1:1: error: the configuration is not an object; expected { } with sections inside\n");
  EXPECT_EQ(load(" 5"), "c.json:1:2: error: the configuration is not an object; expected { } with sections inside\n");
}

TEST(ConfigLoad, BadValuesKeepTheOld) {
  Root root;
  EXPECT_EQ(load(root,
                 "{\"nic\": {\"mtu\": \"33KiB\",\n\"clock\": 5, \"table\": {\"latency\": \"4cyc\"}}, \"shape\": "
                 "\"sta\", \"seed\": -1, \"drop\": 1.5, \"rate\": \"nan\"}"),
            "c.json:1:17: error: nic.mtu: value 33KiB is out of range; expected 64B..32KiB\n"
            "c.json:2:10: error: nic.clock: '5' has no unit; expected a clock in Hz, kHz, MHz or GHz, such as 1GHz\n"
            "c.json:2:34: error: nic.table.latency: value 4cyc is out of range; expected 1cyc..3cyc\n"
            "c.json:2:53: error: shape: 'sta' is unknown; did you mean 'star'?\n"
            "c.json:2:68: error: seed: '-1' is negative; expected integer: decimal or 0x hex, at most "
            "18446744073709551615\n"
            "c.json:2:80: error: drop: '1.5' is too large; expected at most 1\n"
            "c.json:2:93: error: rate: 'nan' is not a number; expected a rate in bps, kbps, Mbps, Gbps or Tbps, or in "
            "B/s, kB/s, MB/s, GB/s or TB/s, such as 400Gbps\n");
  EXPECT_EQ(root.nic.mtu.get(), Bytes::kib(4));
  EXPECT_FALSE(root.nic.mtu.set_by_user());
}

TEST(ConfigLoad, MalformedText) {
  const std::map<std::string, std::string> faults{
      {"{\"seed\" 5}", "1:9: error: malformed JSON at '5}'"},
      {"{\n\"seed\": 5x}", "2:10: error: malformed JSON at 'x}'"},
      {"{\"seed\": 0x10}", "1:11: error: malformed JSON at 'x10}'"},
      {"{seed: 5}", "1:2: error: malformed JSON at 'seed: 5}'"},
      {"{\"seed\": 5", "1:11: error: the JSON text ends too early; expected the end of an open value, list or section"},
      {"{\"se", "1:5: error: the JSON text ends too early; expected the end of an open value, list or section"},
      {"{} {}", "1:4: error: text after the end of the configuration: '{}'"},
      {"{}\n}", "2:1: error: text after the end of the configuration: '}'"},
      {"{} / x", "1:4: error: malformed JSON at '/ x'"},
      {"{\"seed\": '5'}", "1:10: error: malformed JSON at '\\'5\\'}'"},
      {"// only\n", "2:1: error: the JSON text ends too early; expected the end of an open value, list or section"},
  };
  for (const auto& [text, expected] : faults) {
    const std::string complaint = load(text);
    EXPECT_EQ(complaint, "c.json:" + expected + "\n") << text;
  }
  // Whatever these are called, they are refused and stand where they are.
  for (const char* text : {"{\"seed\": \"\x01\"}", "{\"seed\": \"\xff\"}", "{\"seed\": \"\\q\"}",
                           "{\"seed\": \"\\ud800\"}", "{\"seed\": NaN}", "{\"seed\": .5}", "{\"seed\": 1.}"}) {
    EXPECT_EQ(load(text).rfind("c.json:1:1", 0), 0U) << load(text);
  }
  // An error before the fault is still told.
  EXPECT_EQ(load("{\"sed\": 5, }}"),
            "c.json:1:2: error: unknown key 'sed'; did you mean 'seed'?\n"
            "c.json:1:13: error: text after the end of the configuration: '}'\n");
}

TEST(ConfigLoad, NestedJunkStaysOffTheStack) {
  for (const char* open : {"[", "{\"a\":", "{\"nic\":{\"table\":"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) text += open;
    EXPECT_NE(load(text).find("nested too deep; expected at most 32 levels"), std::string::npos) << load(text);
  }
}

TEST(ConfigLoad, ManyErrorsInALongTextAreQuick) {
  std::string text = "{\n";
  for (int i = 0; i < 100'000; ++i) text += "\"wrong" + std::to_string(i) + "\": 1,\n";
  Root root;
  ErrorList errors;
  load_config_text(text + "}", "c.json", keys_of(root), errors);
  EXPECT_EQ(errors.count(), 100'000U);
  EXPECT_EQ(errors.shown().back().position.line, 21U);
}

TEST(ConfigLoad, WholeFileFaults) {
  EXPECT_EQ(load(""), "c.json:1:1: error: the file is empty; expected JSON, {} at least\n");
  EXPECT_EQ(load(" \r\n\t\n"), "c.json:1:1: error: the file is empty; expected JSON, {} at least\n");
  EXPECT_EQ(load("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
            "c.json:1:1: error: the file is a Git LFS pointer, not its content; fetch it with: git lfs pull\n");
  EXPECT_EQ(load(std::string_view("{\"seed\":\0}", 10)),
            "c.json:1:1: error: the file is binary; expected JSON, {} at least\n");
  EXPECT_EQ(load("\x1f\x8b\x08 and so on"), "c.json:1:1: error: the file is compressed; expected JSON, {} at least\n");
}

TEST(ConfigLoad, Files) {
  const std::filesystem::path folder =
      std::filesystem::path{testing::TempDir()} / ("rvma_config_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "x");
  const std::string full = std::filesystem::canonical(folder).string();
  std::ofstream(folder / "good.json") << "{\"seed\": 77}";
  std::ofstream(folder / "bad.json") << "{\n\"sed\": 77}";
  const auto load_file = [&](Root& root, const std::string& path) {
    ErrorList errors;
    load_config_file(path, keys_of(root), errors);
    return text_of(errors);
  };

  Root root;
  EXPECT_EQ(load_file(root, full + "/good.json"), "");
  EXPECT_EQ(root.seed, 77U);
  EXPECT_EQ(load_file(root, full + "/x/../bad.json"),
            full + "/x/../bad.json:2:1: error: unknown key 'sed'; did you mean 'seed'?\n");
  EXPECT_EQ(load_file(root, full + "/./none.json"),
            full + "/./none.json:1:1: error: the file cannot be read: No such file or directory\n");
  EXPECT_EQ(load_file(root, full), full + ":1:1: error: is a directory; expected a configuration file\n");
  EXPECT_EQ(load_file(root, "/dev/zero"),
            "/dev/zero:1:1: error: the file is too large for a configuration; expected at most 16MiB\n");
  std::filesystem::remove_all(folder);
}

TEST(ConfigSet, SetsAndComplains) {
  Root root;
  EXPECT_EQ(set(root, "nic.clock=500MHz"), "");
  EXPECT_EQ(root.nic.clock.get(), Frequency::mhz(500));
  EXPECT_TRUE(root.nic.clock.set_by_user());
  EXPECT_EQ(set(root, "switch.rows=16"), "");
  EXPECT_EQ(root.switch_.rows, 16U);

  EXPECT_EQ(set("nic.clock=5"),
            "rvma: error: --set nic.clock: '5' has no unit; expected a clock in Hz, kHz, MHz or GHz, such as 1GHz\n");
  EXPECT_EQ(set("nic.mtu=1"), "rvma: error: --set nic.mtu: value 1B is out of range; expected 64B..32KiB\n");
  EXPECT_EQ(set("nic.clok=1GHz"), "rvma: error: --set nic.clok: unknown key; did you mean 'nic.clock'?\n");
  EXPECT_EQ(set("mtu=64"), "rvma: error: --set mtu: unknown key; did you mean 'nic.mtu'?\n");
  EXPECT_EQ(set("banana=64"), "rvma: error: --set banana: unknown key; see rvma config --describe\n");
  EXPECT_EQ(set("nic.clock"), "rvma: error: --set nic.clock: has no value; expected --set nic.clock=VALUE\n");
  EXPECT_EQ(set("nic.table=5"),
            "rvma: error: --set nic.table: is a section, not a key; expected one of its keys: rows, latency\n");
  EXPECT_EQ(set("nic.clock="),
            "rvma: error: --set nic.clock: the value is empty; expected a clock in Hz, kHz, MHz or GHz, such as "
            "1GHz\n");
  EXPECT_EQ(set(""), "rvma: error: --set '': unknown key; see rvma config --describe\n");
  EXPECT_EQ(set("=5"), "rvma: error: --set '': unknown key; see rvma config --describe\n");
  EXPECT_EQ(set("a\nb=5"), "rvma: error: --set 'a\\nb': unknown key; see rvma config --describe\n");
}

TEST(ConfigPrint, IsNestedJson) {
  Root root;
  EXPECT_EQ(printed(root), R"({
  "nic": {
    "clock": "1GHz",
    "mtu": "4KiB",
    "nack": "on",
    "table": {
      "rows": 512,
      "latency": "2cyc"
    }
  },
  "limit": "1us",
  "delay": "3cyc",
  "rate": "400Gbps",
  "drop": "0",
  "seed": 1,
  "shape": "automatic",
  "switch": {
    "rows": 512,
    "latency": "2cyc"
  }
}
)");
}

TEST(ConfigPrint, ReadsBackUnchanged) {
  const std::uint64_t seed = testing::UnitTest::GetInstance()->random_seed() + 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 2'000; ++i) {
    Root root;
    root.nic.clock = Frequency::from_uhz(Frequency::mhz(1).uhz() + random.below(Frequency::mhz(1999).uhz()));
    root.nic.mtu = Bytes{64 + random.below(32 * 1024 - 63)};
    root.nic.nack = random.below(2) == 0;
    root.nic.table.rows = static_cast<std::uint32_t>(4 + random.below(1021));
    root.limit = Time::from_ps(static_cast<std::int64_t>(random.next() >> (2 + random.below(60))));
    root.delay = random.below(2) == 0 ? Delay{Time::from_ps(static_cast<std::int64_t>(random.next() >> 2U))}
                                      : Delay{Cycles{static_cast<std::int64_t>(random.next() >> 2U)}};
    root.rate = Rate::from_bits_per_s(random.next());
    root.drop = Probability::from_ppb(random.below(1'000'000'001));
    root.seed = random.next();
    root.shape = random.below(2) == 0 ? Shape::static_ : Shape::star;
    const std::string once = printed(root);
    Root back;
    ASSERT_EQ(load(back, once), "") << once;
    ASSERT_EQ(printed(back), once);
    ASSERT_EQ(back.seed.get(), root.seed.get());
    ASSERT_EQ(back.limit.get(), root.limit.get());
  }
}

TEST(ConfigDescribe, TableIsAligned) {
  Root root;
  std::ostringstream out;
  describe_config(out, keys_of(root));
  std::istringstream lines(out.str());
  std::string header;
  std::getline(lines, header);
  const std::size_t meaning = header.find("meaning");
  EXPECT_EQ(header.find("key"), 0U);
  std::size_t count = 0;
  const std::vector<KeyRef> keys = keys_of(root);
  for (std::string line; std::getline(lines, line); ++count) {
    ASSERT_LT(count, keys.size());
    EXPECT_EQ(line.find(keys[count].path), 0U);
    EXPECT_EQ(line.substr(meaning), keys[count].key->description());
    EXPECT_EQ(
        line.compare(header.find("default"), keys[count].key->default_text().size(), keys[count].key->default_text()),
        0);
  }
  EXPECT_EQ(count, keys.size());
  EXPECT_NE(out.str().find("64B..32KiB"), std::string::npos);
  EXPECT_NE(out.str().find("one of automatic star static"), std::string::npos);
}

TEST(ConfigDescribe, Markdown) {
  Root root;
  std::ostringstream out;
  describe_config_markdown(out, keys_of(root));
  EXPECT_NE(out.str().find("| `nic.mtu` | size | `4KiB` | `64B..32KiB` | payload of a packet |\n"), std::string::npos)
      << out.str();
  EXPECT_NE(out.str().find("| `nic.nack` | on or off | `on` |  | tell \\| refuse |\n"), std::string::npos);
}

}  // namespace
}  // namespace rvma
