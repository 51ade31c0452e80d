// A file that appears whole or not at all.
#include "report/atomic_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

namespace rvma {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "rvma_atomic_XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(directory_), fs::directory_iterator()); }

  fs::path directory_;
};

TEST_F(AtomicFileTest, HasItsNameOnlyOnceItIsWhole) {
  AtomicFile file(path("a.csv"));
  ASSERT_FALSE(file.open());
  file.stream() << "one\r\ntwo\n" << std::string(100'000, 'x');
  file.stream().flush();
  EXPECT_FALSE(fs::exists(path("a.csv")));
  ASSERT_FALSE(file.commit());
  EXPECT_EQ(content(path("a.csv")), "one\r\ntwo\n" + std::string(100'000, 'x'));
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, LeavesTheOldFileUntilThen) {
  std::ofstream(path("a.csv")) << "old";
  {
    AtomicFile file(path("a.csv"));
    ASSERT_FALSE(file.open());
    file.stream() << "half";
  }
  EXPECT_EQ(content(path("a.csv")), "old");
  EXPECT_EQ(files(), 1) << "what was not committed is removed";
  AtomicFile file(path("a.csv"));
  ASSERT_FALSE(file.open());
  file.stream() << "new";
  ASSERT_FALSE(file.commit());
  EXPECT_EQ(content(path("a.csv")), "new");
}

TEST_F(AtomicFileTest, SaysWhatCannotBeWritten) {
  AtomicFile file(path("no/such/place"));
  const auto error = file.open();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->position.source, path("no/such/place"));
  EXPECT_NE(error->what.find("cannot be created"), std::string::npos);

  fs::create_directory(path("taken"));
  std::ofstream(path("taken/inside")) << "x";
  AtomicFile onto_directory(path("taken"));
  EXPECT_TRUE(onto_directory.open());
  EXPECT_TRUE(fs::is_directory(path("taken")));
}

TEST_F(AtomicFileTest, AStreamThatFailedIsNotCommitted) {
  AtomicFile file(path("a.csv"));
  ASSERT_FALSE(file.open());
  file.stream() << "part";
  file.stream().setstate(std::ios::badbit);
  EXPECT_TRUE(file.commit());
  EXPECT_FALSE(fs::exists(path("a.csv")));
}

TEST_F(AtomicFileTest, FollowsLinksAndLeavesThem) {
  std::ofstream(path("real.csv")) << "old";
  fs::create_symlink("real.csv", path("link.csv"));
  fs::create_symlink("link.csv", path("second.csv"));
  fs::create_symlink("later.csv", path("dangling.csv"));
  for (const char* name : {"second.csv", "dangling.csv"}) {
    AtomicFile file(path(name));
    ASSERT_FALSE(file.open());
    file.stream() << "new";
    ASSERT_FALSE(file.commit());
    EXPECT_TRUE(fs::is_symlink(path(name)));
    EXPECT_EQ(content(path(name)), "new");
  }
  EXPECT_TRUE(fs::is_symlink(path("link.csv")));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path("real.csv"))));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path("later.csv"))));
  EXPECT_EQ(files(), 5);
}

TEST_F(AtomicFileTest, WritesIntoAPipeAndLeavesIt) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = content(path("pipe")); });
  AtomicFile file(path("pipe"));
  ASSERT_FALSE(file.open());
  file.stream() << "through";
  ASSERT_FALSE(file.commit());
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace rvma
