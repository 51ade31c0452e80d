#include "workload/import_chakra.hpp"

#if RVMA_HAVE_PROTOBUF

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "workload/import_collectives.hpp"
#include "workload/trace_limits.hpp"

namespace rvma::import_detail {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

/// Of a message: far more than any node needs, and little enough to be read at once.
constexpr std::uint32_t kMaxMessageBytes = 64U << 20U;
constexpr std::size_t kMaxVarintBytes = 10;

// Field numbers of the public schema.
constexpr int kNodeId = 1;
constexpr int kNodeType = 3;
constexpr int kNodeControl = 4;
constexpr int kNodeData = 5;
constexpr int kNodeDuration = 7;
constexpr int kNodeAttribute = 10;
constexpr int kAttributeName = 1;
constexpr int kInt32 = 7;
constexpr int kInt64 = 9;
constexpr int kUint32 = 11;
constexpr int kUint64 = 13;
constexpr int kSint32 = 15;
constexpr int kSint64 = 17;
constexpr int kFixed32 = 19;
constexpr int kFixed64 = 21;
constexpr int kSfixed32 = 23;
constexpr int kSfixed64 = 25;
constexpr int kBoolList = 28;
constexpr int kString = 29;
constexpr int kLastValue = 32;
constexpr int kBoolListValues = 1;

enum class NodeType : std::uint64_t {
  invalid,
  metadata,
  load,
  store,
  compute,
  send,
  receive,
  collective,
  storage,
  batch,
  checkpoint
};

/// A node, as far as it matters here.
struct Node {
  std::uint64_t id = 0;
  std::uint64_t type = 0;
  std::uint64_t duration_us = 0;
  std::vector<std::uint64_t> requires_ids;
  std::optional<std::int64_t> size;
  std::optional<std::int64_t> source;
  std::optional<std::int64_t> destination;
  std::optional<std::int64_t> tag;
  std::optional<std::int64_t> collective;  ///< CollectiveCommType
  std::optional<std::int64_t> root;
  std::string group;
  bool is_partial = false;  ///< a collective over some dimensions of the machine only
};

/// What is wrong with the bytes, and where in the message.
struct WireMistake {
  std::uint32_t column;
  std::string what;
};

class NodeParser {
 public:
  explicit NodeParser(std::string_view bytes)
      : in_(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

  std::optional<WireMistake> parse(Node& node) {
    while (const std::uint32_t tag = next_tag()) {
      if (!field(tag, node)) return mistake_;
    }
    if (!in_.ConsumedEntireMessage()) fail("malformed protobuf");
    return mistake_;
  }

 private:
  static constexpr auto kVarint = WireFormatLite::WIRETYPE_VARINT;
  static constexpr auto kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

  std::uint32_t next_tag() {
    at_ = static_cast<std::uint32_t>(in_.CurrentPosition()) + 1;
    return in_.ReadTag();
  }
  bool fail(std::string what) {
    if (!mistake_) mistake_ = WireMistake{at_, std::move(what)};
    return false;
  }
  bool skip(std::uint32_t tag) { return WireFormatLite::SkipField(&in_, tag) || fail("malformed protobuf"); }
  bool varint(std::uint64_t& value) { return in_.ReadVarint64(&value) || fail("malformed protobuf"); }

  bool field(std::uint32_t tag, Node& node) {
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const auto wire = WireFormatLite::GetTagWireType(tag);
    if (number == kNodeId && wire == kVarint) return varint(node.id);
    if (number == kNodeType && wire == kVarint) return varint(node.type);
    if (number == kNodeDuration && wire == kVarint) return varint(node.duration_us);
    if (number == kNodeControl || number == kNodeData) {
      return read_numbers(tag, [&](std::uint64_t id) { node.requires_ids.push_back(id); });
    }
    if (number == kNodeAttribute && wire == kBytes) return read_attribute(node);
    return skip(tag);
  }

  /// Numbers that may be packed; `take` is called with each.
  template <class Take>
  bool read_numbers(std::uint32_t tag, Take take) {
    const auto wire = WireFormatLite::GetTagWireType(tag);
    std::uint64_t value = 0;
    if (wire == kVarint) {
      if (!varint(value)) return false;
      take(value);
      return true;
    }
    if (wire != kBytes) return skip(tag);
    std::uint32_t length = 0;
    if (!enter(length)) return false;
    const auto limit = in_.PushLimit(static_cast<int>(length));
    while (in_.BytesUntilLimit() > 0) {
      if (!varint(value)) return false;
      take(value);
    }
    in_.PopLimit(limit);
    return true;
  }

  /// The length of what is within; it has to be there.
  bool enter(std::uint32_t& length) {
    if (!in_.ReadVarint32(&length)) return fail("malformed protobuf");
    if (length > kMaxMessageBytes || !fits(length)) return fail("a field is longer than its message");
    return true;
  }
  bool fits(std::uint32_t length) {
    const int left = in_.BytesUntilLimit();
    if (left >= 0) return static_cast<int>(length) <= left;
    const void* data = nullptr;
    int available = 0;
    if (!in_.GetDirectBufferPointer(&data, &available)) available = 0;
    return static_cast<int>(length) <= available;
  }

  bool read_attribute(Node& node) {
    const std::uint32_t begin = at_;
    std::uint32_t length = 0;
    if (!enter(length)) return false;
    const auto limit = in_.PushLimit(static_cast<int>(length));
    std::string name;
    std::string text;
    std::optional<std::int64_t> value;
    bool has_other_value = false;
    bool has_false = false;
    while (const std::uint32_t tag = next_tag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      if (number == kAttributeName && WireFormatLite::GetTagWireType(tag) == kBytes) {
        if (!read_string(name)) return false;
      } else if (is_integer(tag)) {
        if (!read_integer(number, value)) return false;
      } else if (number == kString && WireFormatLite::GetTagWireType(tag) == kBytes) {
        has_other_value = true;
        if (!read_string(text)) return false;
      } else if (number == kBoolList && WireFormatLite::GetTagWireType(tag) == kBytes) {
        has_other_value = true;
        if (!read_bools(has_false)) return false;
      } else {
        has_other_value = has_other_value || (number > 2 && number <= kLastValue);
        if (!skip(tag)) return false;
      }
    }
    if (in_.BytesUntilLimit() != 0) return fail("malformed protobuf");
    in_.PopLimit(limit);
    at_ = begin;
    if (name == "pg_name") node.group = value ? std::to_string(*value) : text;
    if (name == "involved_dim") node.is_partial = has_false;
    return keep(name, value, has_other_value, node);
  }

  bool read_string(std::string& text) {
    std::uint32_t size = 0;
    return enter(size) && (in_.ReadString(&text, static_cast<int>(size)) || fail("malformed protobuf"));
  }

  /// Whether a list of truth values has one that is false.
  bool read_bools(bool& has_false) {
    std::uint32_t length = 0;
    if (!enter(length)) return false;
    const auto limit = in_.PushLimit(static_cast<int>(length));
    while (const std::uint32_t tag = next_tag()) {
      const bool good = WireFormatLite::GetTagFieldNumber(tag) != kBoolListValues
                            ? skip(tag)
                            : read_numbers(tag, [&](std::uint64_t value) { has_false = has_false || value == 0; });
      if (!good) return false;
    }
    if (in_.BytesUntilLimit() != 0) return fail("malformed protobuf");
    in_.PopLimit(limit);
    return true;
  }

  static bool is_integer(std::uint32_t tag) {
    const auto wire = WireFormatLite::GetTagWireType(tag);
    switch (WireFormatLite::GetTagFieldNumber(tag)) {
      case kInt32:
      case kInt64:
      case kUint32:
      case kUint64:
      case kSint32:
      case kSint64:
        return wire == kVarint;
      case kFixed32:
      case kSfixed32:
        return wire == WireFormatLite::WIRETYPE_FIXED32;
      case kFixed64:
      case kSfixed64:
        return wire == WireFormatLite::WIRETYPE_FIXED64;
      default:
        return false;
    }
  }

  bool read_integer(int number, std::optional<std::int64_t>& value) {
    std::uint64_t wide = 0;
    std::uint32_t narrow = 0;
    const bool is_narrow = number == kFixed32 || number == kSfixed32;
    const bool is_fixed = number >= kFixed32;
    const bool good = !is_fixed   ? in_.ReadVarint64(&wide)
                      : is_narrow ? in_.ReadLittleEndian32(&narrow)
                                  : in_.ReadLittleEndian64(&wide);
    if (!good) return fail("malformed protobuf");
    if (number == kSint32 || number == kSint64) {
      value = WireFormatLite::ZigZagDecode64(wide);
    } else if (is_narrow) {
      value = number == kFixed32 ? std::int64_t{narrow} : std::int64_t{static_cast<std::int32_t>(narrow)};
    } else if ((number == kUint64 || number == kFixed64) && wide > static_cast<std::uint64_t>(kMost)) {
      return fail("an integer does not fit 63 bits");
    } else {
      value = static_cast<std::int64_t>(wide);
    }
    return true;
  }

  bool keep(const std::string& name, const std::optional<std::int64_t>& value, bool has_other_value, Node& node) {
    std::optional<std::int64_t>* const to = name == "comm_size"   ? &node.size
                                            : name == "comm_src"  ? &node.source
                                            : name == "comm_dst"  ? &node.destination
                                            : name == "comm_tag"  ? &node.tag
                                            : name == "comm_type" ? &node.collective
                                            : name == "root_rank" ? &node.root
                                                                  : nullptr;
    if (to == nullptr) return true;
    if (!value && has_other_value) return fail("the attribute " + rvma::quoted(name) + " is no integer");
    *to = value ? value : std::optional<std::int64_t>{0};  // what has the default is not on the wire
    return true;
  }

  static constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

  CodedInputStream in_;
  std::uint32_t at_ = 1;  ///< of the field under way
  std::optional<WireMistake> mistake_;
};

/// One rank's file. Its collectives join `groups`.
class ChakraReader {
 public:
  ChakraReader(const std::vector<ImportSource>& sources, std::uint32_t rank, ImportGraph& graph,
               std::vector<CollectiveGroup>& groups, ImportLog& log)
      : source_(sources[rank]), rank_(rank), graph_(graph), groups_(groups), log_(log) {}

  void read() {
    std::string message;
    while (next(message)) {
      Node node;
      if (number_ == 1) {
        read_metadata(message);
        continue;
      }
      if (const auto mistake = NodeParser(message).parse(node)) {
        fail(number_, mistake->column, mistake->what, "expected a Node of the Chakra schema");
        continue;
      }
      add(node);
    }
    link();
  }

 private:
  struct Requirement {
    std::uint32_t after;
    std::uint64_t before;  ///< id
    ImportPlace place;
  };

  /// A GlobalMetadata has nothing where a Node has its type: a file that begins with a node would lose it.
  void read_metadata(const std::string& message) {
    Node node;
    const auto mistake = NodeParser(message).parse(node);
    if (mistake) return fail(1, mistake->column, mistake->what, "expected the GlobalMetadata of the Chakra schema");
    if (node.type != 0) fail(1, 1, "the file begins with a node", "expected a GlobalMetadata before it");
  }

  void fail(std::uint32_t message, std::uint32_t column, std::string what, std::string expected) {
    log_.errors().add(Position{source_.name, message, column}, std::move(what), std::move(expected));
  }

  /// The next message behind its length. False at the end of the file.
  bool next(std::string& message) {
    if (offset_ >= source_.text->size()) return false;
    ++number_;
    char head[kMaxVarintBytes];
    const std::size_t got = source_.text->read(offset_, head, sizeof head);
    std::uint64_t length = 0;
    std::size_t used = 0;
    for (bool more = true; more && used < got && used < 5; ++used) {
      length |= static_cast<std::uint64_t>(static_cast<unsigned char>(head[used]) & 0x7fU) << (7 * used);
      more = (static_cast<unsigned char>(head[used]) & 0x80U) != 0;
      if (!more && length <= kMaxMessageBytes) {
        return read_message(message, offset_ + used + 1, length);
      }
    }
    fail(number_, 1, used >= got ? "the file ends within a message's length" : "no message's length",
         "expected varint-delimited messages of at most 64MiB");
    offset_ = source_.text->size();
    return false;
  }

  bool read_message(std::string& message, std::uint64_t begin, std::uint64_t length) {
    message.resize(length);
    if (begin + length > source_.text->size() || source_.text->read(begin, message.data(), length) != length) {
      fail(number_, 1, "the file ends within this message of " + std::to_string(length) + " bytes",
           "expected the whole message");
      offset_ = source_.text->size();
      return false;
    }
    offset_ = begin + length;
    return true;
  }

  void add(const Node& node) {
    ImportOperation op;
    op.rank = rank_;
    op.place = {number_, 1, rank_};
    bool good = true;
    CollectiveNode collective;
    const bool is_collective = static_cast<NodeType>(node.type) == NodeType::collective;
    switch (static_cast<NodeType>(node.type)) {
      case NodeType::send:
      case NodeType::receive:
        good = read_message_node(node, op);
        break;
      case NodeType::collective:
        good = read_collective(node, collective);
        break;
      case NodeType::invalid:
        good = false;
        fail(number_, 1, "an invalid node", "expected a type");
        break;
      default:
        good = node.type <= static_cast<std::uint64_t>(NodeType::checkpoint);
        if (!good)
          fail(number_, 1, "a node of type " + std::to_string(node.type),
               "expected a type of the Chakra schema, 1..10");
        good = good && read_duration(node, op);
        break;
    }
    if (!good) return;
    const std::uint32_t index = graph_.add(op);
    const std::uint32_t end = is_collective ? graph_.add(op) : index;
    const auto [first, is_new] = ids_.try_emplace(node.id, end);
    if (!is_new) {
      return fail(number_, 1, "a second node of id " + std::to_string(node.id),
                  "expected another one; message " + std::to_string(graph_.operations[first->second].place.line) +
                      " has this one");
    }
    for (const std::uint64_t id : node.requires_ids) requirements_.push_back({index, id, op.place});
    if (!is_collective) return;
    collective.part = {rank_, index, end, op.place};
    group(node.group).nodes.push_back(collective);
  }

  CollectiveGroup& group(const std::string& name) {
    const auto found =
        std::find_if(groups_.begin(), groups_.end(), [&](const CollectiveGroup& one) { return one.name == name; });
    return found != groups_.end() ? *found : groups_.emplace_back(CollectiveGroup{name, {}});
  }

  bool read_collective(const Node& node, CollectiveNode& collective) {
    const auto refuse = [&](std::string what, std::string expected) {
      fail(number_, 1, std::move(what), std::move(expected));
      return false;
    };
    if (!node.collective) return refuse("the node has no attribute comm_type", "expected it of a collective");
    if (*node.collective < 0 || *node.collective >= std::int64_t{kCollectiveKinds}) {
      return refuse("comm_type " + std::to_string(*node.collective) + " is no collective of the Chakra schema",
                    "expected 0.." + std::to_string(kCollectiveKinds - 1));
    }
    collective.kind = static_cast<CollectiveKind>(*node.collective);
    if (!node.size && collective.kind != CollectiveKind::barrier) {
      return refuse("the node has no attribute comm_size", "expected it of a collective");
    }
    if (node.is_partial) {
      return refuse("the collective is over some dimensions of the machine (involved_dim)",
                    "expected all of them, or the attribute pg_name of the ranks that take part");
    }
    if (node.size.value_or(0) < 0 || node.root.value_or(0) < 0) {
      return refuse("comm_size or root_rank is out of range", "expected sizes and ranks from 0");
    }
    collective.size = static_cast<std::uint64_t>(node.size.value_or(0));
    collective.root = node.root.value_or(-1);
    return true;
  }

  bool read_duration(const Node& node, ImportOperation& op) {
    constexpr auto kMostUs = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / 1'000'000;
    if (node.duration_us > kMostUs) {
      fail(number_, 1, "a duration of " + std::to_string(node.duration_us) + " us is too long",
           "expected at most " + std::to_string(kMostUs));
      return false;
    }
    op.time = Time::from_us(static_cast<std::int64_t>(node.duration_us));
    return true;
  }

  bool read_message_node(const Node& node, ImportOperation& op) {
    const bool is_send = static_cast<NodeType>(node.type) == NodeType::send;
    op.kind = is_send ? ImportKind::send : ImportKind::receive;
    const auto& peer = is_send ? node.destination : node.source;
    const char* const peer_name = is_send ? "comm_dst" : "comm_src";
    if (!node.size || !peer) {
      fail(number_, 1, std::string("the node has no attribute ") + (node.size ? peer_name : "comm_size"),
           "expected it of a message");
      return false;
    }
    const std::int64_t tag = node.tag.value_or(0);
    if (*node.size < 0 || *peer < 0 || tag < 0 || tag >= std::int64_t{kFirstCollectiveTag}) {
      fail(number_, 1, "comm_size, comm_tag or the peer is out of range",
           "expected sizes and ranks from 0, tags of 31 bits");
      return false;
    }
    op.size = static_cast<std::uint64_t>(*node.size);
    op.peer = static_cast<std::uint32_t>(std::min<std::int64_t>(*peer, std::numeric_limits<std::uint32_t>::max()));
    op.tag = static_cast<std::uint32_t>(tag);
    return true;
  }

  void link() {
    for (const Requirement& requirement : requirements_) {
      const auto found = ids_.find(requirement.before);
      if (found == ids_.end()) {
        fail(requirement.place.line, 1,
             "the node requires node " + std::to_string(requirement.before) + ", which is not there",
             "expected a node of this file");
        continue;
      }
      graph_.dependencies.push_back({found->second, requirement.after, false, requirement.place});
    }
  }

  const ImportSource& source_;
  std::uint32_t rank_;
  ImportGraph& graph_;
  std::vector<CollectiveGroup>& groups_;
  ImportLog& log_;
  std::uint64_t offset_ = 0;
  std::uint32_t number_ = 0;  ///< of the message under way, from 1
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> ids_;
  std::vector<Requirement> requirements_;
};

}  // namespace

const char* chakra_missing() { return ""; }

void read_chakra(const std::vector<ImportSource>& sources, const ImportOptions& /*options*/, ImportGraph& graph,
                 ImportLog& log) {
  graph.remarks.push_back("imported from Chakra execution traces");
  graph.ranks = static_cast<std::uint32_t>(sources.size());
  std::vector<CollectiveGroup> groups;
  for (std::uint32_t rank = 0; rank < graph.ranks; ++rank) ChakraReader(sources, rank, graph, groups, log).read();
  if (log.errors().empty()) match_collectives(groups, graph, log);
}

}  // namespace rvma::import_detail

#else

namespace rvma::import_detail {

const char* chakra_missing() {
  return "this program was built without protobuf; install libprotobuf-dev, configure and build again";
}

void read_chakra(const std::vector<ImportSource>& /*sources*/, const ImportOptions& /*options*/, ImportGraph& /*graph*/,
                 ImportLog& log) {
  log.errors().add(Position{"rvma", 0, 0}, chakra_missing());
}

}  // namespace rvma::import_detail

#endif
