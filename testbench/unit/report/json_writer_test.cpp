// Streaming JSON: valid, in the order of the calls, numbers to the last digit.
#include "report/json_writer.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <limits>
#include <sstream>
#include <string>

namespace rvma {
namespace {

TEST(JsonWriter, WritesInTheOrderOfTheCalls) {
  std::ostringstream out;
  JsonWriter json(out);
  json.open_object();
  json.text("schema", "rvma-stats/1");
  json.open_object("b");
  json.number("z", std::uint64_t{1});
  json.boolean("a", true);
  json.close_object();
  json.open_array("list");
  json.number({}, std::uint64_t{1});
  json.open_object();
  json.boolean("off", false);
  json.close_object();
  json.open_array();
  json.close_array();
  json.close_array();
  json.open_object("empty");
  json.close_object();
  json.raw("raw", R"({"x":[1,2]})");
  json.close_object();
  const std::string expected =
      "{\n  \"schema\": \"rvma-stats/1\",\n  \"b\": {\n    \"z\": 1,\n    \"a\": true\n  },\n  \"list\": [\n    1,\n"
      "    {\n      \"off\": false\n    },\n    []\n  ],\n  \"empty\": {},\n  \"raw\": {\"x\":[1,2]}\n}\n";
  EXPECT_EQ(out.str(), expected);
  EXPECT_EQ(boost::json::parse(out.str()).at("list").as_array().size(), 3U);
}

TEST(JsonWriter, NumbersStandExactly) {
  std::ostringstream out;
  JsonWriter json(out);
  json.open_object();
  json.number("max", std::numeric_limits<std::uint64_t>::max());
  json.number("given", "9007199254740993.125");
  json.time("time_ns", Time::from_ps((1LL << 53U) + 1));
  json.close_object();
  EXPECT_NE(out.str().find("\"max\": 18446744073709551615"), std::string::npos);
  EXPECT_NE(out.str().find("\"given\": 9007199254740993.125"), std::string::npos);
  EXPECT_NE(out.str().find("\"time_ns\": 9007199254740.993"), std::string::npos);
}

TEST(JsonWriter, EveryByteOfAStringReadsBack) {
  std::string ascii;
  for (int c = 0; c < 128; ++c) ascii += static_cast<char>(c);
  const std::string text = ascii + "\xc3\xa4\xe2\x82\xac";
  std::ostringstream out;
  JsonWriter json(out);
  json.open_object();
  json.text(ascii, text);
  json.close_object();
  const boost::json::value parsed = boost::json::parse(out.str());
  ASSERT_EQ(parsed.as_object().size(), 1U);
  EXPECT_EQ(std::string(parsed.as_object().begin()->key()), ascii);
  EXPECT_EQ(std::string(parsed.as_object().begin()->value().as_string()), text);
}

}  // namespace
}  // namespace rvma
