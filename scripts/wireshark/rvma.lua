-- Wireshark dissector of RVMA packets and of the model's RDMA baseline: UDP port 49200.
--
--   wireshark -X lua_script:rvma.lua FILE.pcapng     (or copy this file to Wireshark's directory of personal Lua plugins)
--
-- Fields, offsets and codes are those of docs/reference/wire-format.md. Wrong bytes of any kind become expert
-- information, never an error of this script: nothing is read behind the bytes that are there.

local PORT = 49200
local VERSION = 1
local TRANSPORT, DATA, GET, RDMA, ACK, CRC = 20, 40, 20, 12, 12, 4  -- bytes
local MOST_BITS_SHOWN = 64                                          -- of a bitmap, and outcomes, in one line

local TYPE = { [1] = "data", [2] = "acknowledgement", [3] = "request of a get", [4] = "RDMA" }
local OPERATION = { [1] = "write", [2] = "write with immediate", [3] = "send", [4] = "read", [5] = "answer to a read" }
local READ = 4
local OUTCOME = {
  [0] = "pending", [1] = "ok", [2] = "no_mailbox", [3] = "closed", [4] = "bad_key", [5] = "stale", [6] = "no_buffer",
  [7] = "bounds", [8] = "busy",
}

local rvma = Proto("rvma", "Remote Virtual Memory Access")
local field = {
  version = ProtoField.uint8("rvma.version", "Version", base.DEC, nil, 0xf0),
  type = ProtoField.uint8("rvma.type", "Type", base.DEC, TYPE, 0x0f),
  flags = ProtoField.uint8("rvma.flags", "Flags (reserved)", base.HEX),
  open_span = ProtoField.uint16("rvma.open_span", "Open span (message id less the sender's oldest open id)"),
  bitmap_words = ProtoField.uint16("rvma.ack.bitmap_words", "Words of the bitmap"),
  source_incarnation = ProtoField.uint32("rvma.source_incarnation", "Source incarnation"),
  destination_incarnation = ProtoField.uint32("rvma.destination_incarnation", "Destination incarnation"),
  generation = ProtoField.uint32("rvma.generation", "Generation of the context"),
  sequence = ProtoField.uint32("rvma.sequence", "Sequence number"),
  age = ProtoField.uint32("rvma.ack.age", "1 + age of the NIC (whole us; 0: not told, an ordinary acknowledgement)"),
  source_node = ProtoField.uint32("rvma.source_node", "Source node"),
  destination_node = ProtoField.uint32("rvma.destination_node", "Destination node"),

  destination_pid = ProtoField.uint16("rvma.destination_pid", "Destination pid"),
  source_pid = ProtoField.uint16("rvma.source_pid", "Source pid"),
  key = ProtoField.uint32("rvma.key", "Key", base.HEX),
  mailbox = ProtoField.uint64("rvma.mailbox", "Mailbox", base.HEX),
  message = ProtoField.uint32("rvma.message", "Message id"),
  packet_index = ProtoField.uint32("rvma.packet_index", "Packet index"),
  message_length = ProtoField.uint64("rvma.message_length", "Length of the message (bytes)", base.DEC),
  offset = ProtoField.uint64("rvma.offset", "Offset of the put (bytes)", base.DEC),
  payload = ProtoField.bytes("rvma.payload", "Payload"),
  payload_length = ProtoField.uint32("rvma.payload_length", "Payload length (bytes)"),

  get_length = ProtoField.uint64("rvma.get.length", "Bytes to be read", base.DEC),
  get_mailbox = ProtoField.uint64("rvma.get.mailbox", "Mailbox for the answer", base.HEX),
  get_key = ProtoField.uint32("rvma.get.key", "Key for the answer", base.HEX),

  operation = ProtoField.uint8("rvma.rdma.operation", "Operation", base.DEC, OPERATION),
  reserved = ProtoField.uint24("rvma.rdma.reserved", "Reserved", base.HEX),
  queue_pair = ProtoField.uint32("rvma.rdma.queue_pair", "Queue pair at the receiver"),
  immediate = ProtoField.uint32("rvma.rdma.immediate", "Immediate", base.HEX),
  address = ProtoField.uint64("rvma.rdma.address", "Address in the receiver's memory", base.HEX),
  region_key = ProtoField.uint32("rvma.rdma.key", "Key of the region", base.HEX),
  order = ProtoField.uint64("rvma.rdma.order", "Place in the queue pair's order", base.DEC),
  answer_address = ProtoField.uint64("rvma.rdma.answer_address", "Address for the answer", base.HEX),

  cumulative = ProtoField.uint32("rvma.ack.cumulative", "Every sequence number below is disposed of"),
  outcomes_from = ProtoField.uint32("rvma.ack.outcomes_from", "First message id of the outcomes"),
  outcome_count = ProtoField.uint16("rvma.ack.outcome_count", "Number of outcomes"),
  ack_reserved = ProtoField.uint16("rvma.ack.reserved", "Reserved", base.HEX),
  bitmap = ProtoField.uint64("rvma.ack.bitmap", "Bitmap", base.HEX),
  outcome = ProtoField.uint8("rvma.ack.outcome", "Outcome", base.DEC, OUTCOME),

  crc = ProtoField.uint32("rvma.crc", "CRC", base.HEX),
  crc_good = ProtoField.bool("rvma.crc.good", "CRC is right"),
}
local all = {}
for _, one in pairs(field) do all[#all + 1] = one end
rvma.fields = all

local wrong = {
  truncated = ProtoExpert.new("rvma.truncated", "Fewer bytes than the headers need", expert.group.MALFORMED,
                              expert.severity.ERROR),
  version = ProtoExpert.new("rvma.bad_version", "Unknown version", expert.group.PROTOCOL, expert.severity.ERROR),
  type = ProtoExpert.new("rvma.bad_type", "Unknown type", expert.group.PROTOCOL, expert.severity.ERROR),
  reserved = ProtoExpert.new("rvma.bad_reserved", "A reserved field is not 0", expert.group.PROTOCOL,
                             expert.severity.WARN),
  length = ProtoExpert.new("rvma.bad_length", "Length does not agree with the headers", expert.group.MALFORMED,
                           expert.severity.ERROR),
  operation = ProtoExpert.new("rvma.bad_operation", "No RDMA operation", expert.group.PROTOCOL, expert.severity.ERROR),
  outcome = ProtoExpert.new("rvma.bad_outcome", "No outcome that travels", expert.group.PROTOCOL,
                            expert.severity.ERROR),
  crc = ProtoExpert.new("rvma.bad_crc", "CRC is wrong", expert.group.CHECKSUM, expert.severity.ERROR),
  cut = ProtoExpert.new("rvma.cut", "The capture does not have the whole packet", expert.group.UNDECODED,
                        expert.severity.NOTE),
}
local experts = {}
for _, one in pairs(wrong) do experts[#experts + 1] = one end
rvma.experts = experts

rvma.prefs.check_crc = Pref.bool("Check the CRC", true, "Computes the CRC of every whole packet")

-- ------------------------------------------------------------------------------------------------------------- CRC-32

local crc_table = {}
for i = 0, 255 do
  local value = i
  for _ = 1, 8 do
    local odd = bit.band(value, 1) == 1
    value = bit.rshift(value, 1)
    if odd then value = bit.bxor(value, 0xedb88320) end
  end
  crc_table[i] = value
end

local function crc_update(crc, bytes)
  for i = 1, #bytes do
    crc = bit.bxor(bit.rshift(crc, 8), crc_table[bit.band(bit.bxor(crc, bytes:byte(i)), 0xff)])
  end
  return crc
end

-- The four bytes of an IPv4 address as text.
local function address_bytes(address)
  local a, b, c, d = tostring(address):match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$")
  if not a then return nil end
  return string.char(tonumber(a), tonumber(b), tonumber(c), tonumber(d))
end

-- Of source and destination address and everything up to the CRC itself; nil: no IPv4 addresses.
local function crc_of(tvb, length, pinfo)
  local source, destination = address_bytes(pinfo.net_src), address_bytes(pinfo.net_dst)
  if not source or not destination then return nil end
  local crc = crc_update(bit.bnot(0), source .. destination)
  crc = bit.bnot(crc_update(crc, tvb:raw(0, length)))
  return crc % 0x100000000
end

-- Node n is 10.0.0.0 + n + 1; nil: no node's address.
local function node_of(address)
  local bytes = address_bytes(address)
  if not bytes or bytes:byte(1) ~= 10 then return nil end
  local node = (bytes:byte(2) * 256 + bytes:byte(3)) * 256 + bytes:byte(4) - 1
  return node >= 0 and node or nil
end

-- ---------------------------------------------------------------------------------------------------------- a packet

-- Reads one field after another, and stops for good at the first that is not there.
local function reader(tvb, tree)
  local self = { at = 0, whole = true }
  function self.has(bytes)
    if self.whole and self.at + bytes > tvb:len() then self.whole = false end
    return self.whole
  end
  function self.add(what, bytes)
    if not self.has(bytes) then return nil end
    local range = tvb(self.at, bytes)
    local item = tree:add(what, range)
    self.at = self.at + bytes
    return range, item
  end
  return self
end

local function must_be_zero(range, item)
  if range and range:uint() ~= 0 then item:add_proto_expert_info(wrong.reserved) end
end

local function add_get(read, tree, is_rdma)
  local length = read.add(field.get_length, 8)
  read.add(is_rdma and field.answer_address or field.get_mailbox, 8)
  read.add(field.get_key, 4)
  return length and (" length " .. tostring(length:uint64())) or ""
end

local function add_payload(read, tree, tvb, reported)
  local length = reported - read.at - CRC
  if length < 0 then
    tree:add_proto_expert_info(wrong.truncated)
    read.whole = false
    return ""
  end
  tree:add(field.payload_length, tvb(math.min(read.at, tvb:len()), 0), length):set_generated()
  if length > 0 and read.has(0) then
    local here = math.min(length, tvb:len() - read.at)
    if here > 0 then tree:add(field.payload, tvb(read.at, here)) end
    read.at = read.at + length
  end
  return " " .. length .. " B"
end

local function add_data(read, tree, tvb, reported, kind)
  local is_rdma = kind == 4
  read.add(field.destination_pid, 2)
  read.add(field.source_pid, 2)
  read.add(is_rdma and field.region_key or field.key, 4)
  local mailbox = read.add(is_rdma and field.address or field.mailbox, 8)
  local message = read.add(field.message, 4)
  local index = read.add(field.packet_index, 4)
  read.add(field.message_length, 8)
  local offset = read.add(is_rdma and field.order or field.offset, 8)
  if not offset then return "" end
  local info = string.format(" %s 0x%s message %d #%d", is_rdma and "address" or "mailbox", tostring(mailbox:bytes()),
                             message:uint(), index:uint())
  local is_request = kind == 3
  if is_rdma then
    local operation, item = read.add(field.operation, 1)
    local reserved, reserved_item = read.add(field.reserved, 3)
    must_be_zero(reserved, reserved_item)
    read.add(field.queue_pair, 4)
    read.add(field.immediate, 4)
    if not operation then return info end
    if not OPERATION[operation:uint()] then item:add_proto_expert_info(wrong.operation) end
    info = " " .. (OPERATION[operation:uint()] or "?") .. info
    is_request = operation:uint() == READ
  end
  if is_request then return info .. add_get(read, tree, is_rdma) end
  return info .. add_payload(read, tree, tvb, reported)
end

local function add_acknowledgement(read, tree, tvb, reported, words)
  local cumulative = read.add(field.cumulative, 4)
  local first = read.add(field.outcomes_from, 4)
  local count = read.add(field.outcome_count, 2)
  local reserved, item = read.add(field.ack_reserved, 2)
  if not reserved then return "" end
  must_be_zero(reserved, item)
  local outcomes = count:uint()
  local needed = TRANSPORT + ACK + 8 * words + math.floor((outcomes + 1) / 2) + CRC
  if needed ~= reported then
    tree:add_proto_expert_info(wrong.length, string.format("%d bytes, but %d words and %d outcomes take %d", reported,
                                                           words, outcomes, needed))
  end
  for word = 0, words - 1 do
    local range, word_item = read.add(field.bitmap, 8)
    if not range then break end
    if word < MOST_BITS_SHOWN then
      word_item:append_text(string.format(" (numbers from %d)", cumulative:uint() + 64 * word))
    end
  end
  for i = 0, outcomes - 1 do
    if i % 2 == 0 and not read.has(1) then break end
    local range = tvb(read.at, 1)
    local code = bit.band(bit.rshift(range:uint(), i % 2 * 4), 0x0f)
    local outcome = tree:add(field.outcome, range, code)
    outcome:append_text(string.format(", message %d", (first:uint() + i) % 0x100000000))
    if not OUTCOME[code] then outcome:add_proto_expert_info(wrong.outcome) end
    if i % 2 == 1 or i == outcomes - 1 then read.at = read.at + 1 end
  end
  return string.format(" below %d", cumulative:uint()) .. (outcomes > 0 and string.format(", %d outcomes", outcomes) or "")
end

local function add_crc(read, tree, tvb, reported, pinfo)
  if tvb:len() < reported then
    tree:add_proto_expert_info(wrong.cut)
    return
  end
  if not read.whole or reported < CRC then return end
  if read.at ~= reported - CRC then
    tree:add_proto_expert_info(wrong.length)
    return
  end
  local range = tvb(reported - CRC, CRC)
  local item = tree:add(field.crc, range)
  if not rvma.prefs.check_crc then return end
  local expected = crc_of(tvb, reported - CRC, pinfo)
  if not expected then return end
  local is_good = range:uint() == expected
  tree:add(field.crc_good, range, is_good):set_generated()
  if is_good then return end
  item:append_text(string.format(" (wrong, should be 0x%08x)", expected))
  item:add_proto_expert_info(wrong.crc)
  pinfo.cols.info:append(" [bad CRC]")
end

function rvma.dissector(tvb, pinfo, root)
  local reported = tvb:reported_len()
  pinfo.cols.protocol = "RVMA"
  local tree = root:add(rvma, tvb(0, tvb:len()))
  if tvb:len() < TRANSPORT then
    pinfo.cols.info = "cut short"
    tree:add_proto_expert_info(tvb:len() < reported and wrong.cut or wrong.truncated)
    return tvb:len()
  end
  local source, destination = node_of(pinfo.net_src), node_of(pinfo.net_dst)
  if source then tree:add(field.source_node, tvb(0, 0), source):set_generated() end
  if destination then tree:add(field.destination_node, tvb(0, 0), destination):set_generated() end

  -- 1. The transport header.
  local read = reader(tvb, tree)
  local first = tvb(0, 1)
  local kind = bit.band(first:uint(), 0x0f)
  local version_item = tree:add(field.version, first)
  local type_item = tree:add(field.type, first)
  read.at = 1
  local flags, flags_item = read.add(field.flags, 1)
  must_be_zero(flags, flags_item)
  local span = read.add(kind == 2 and field.bitmap_words or field.open_span, 2)
  read.add(field.source_incarnation, 4)
  read.add(field.destination_incarnation, 4)
  read.add(field.generation, 4)
  local sequence = read.add(kind == 2 and field.age or field.sequence, 4)

  -- 2. What comes behind it depends on the type.
  local info = (TYPE[kind] or ("type " .. kind))
  if source and destination then info = string.format("%d -> %d ", source, destination) .. info end
  if bit.rshift(first:uint(), 4) ~= VERSION then
    version_item:add_proto_expert_info(wrong.version)
    info = info .. ", unknown version"
  elseif not TYPE[kind] then
    type_item:add_proto_expert_info(wrong.type)
  else
    if kind == 2 then
      info = info .. add_acknowledgement(read, tree, tvb, reported, span:uint())
    else
      info = info .. add_data(read, tree, tvb, reported, kind) .. " sequence " .. sequence:uint()
    end
    if not read.whole and tvb:len() >= reported then tree:add_proto_expert_info(wrong.truncated) end
    pinfo.cols.info = info
    add_crc(read, tree, tvb, reported, pinfo)
    return tvb:len()
  end
  pinfo.cols.info = info
  return tvb:len()
end

DissectorTable.get("udp.port"):add(PORT, rvma)
