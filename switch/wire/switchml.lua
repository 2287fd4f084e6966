-- Wireshark and tshark: SwitchML over UDP, as switch/wire/switchml.h describes it, and OmniReduce's blocks, as switch/wire/sparse.h does.
--
--   tshark -X lua_script:switchml.lua -r FILE.pcap -T fields -e switchml.slot -e switchml.element
--
-- Packets to a switch are known by its UDP ports, results by the same ports as source. Packets over RoCEv2 (switch/wire/roce.h)
-- stay Wireshark's own; what SwitchML reads in them is added below: switchml_roce.slot and so on.

local switchml = Proto("switchml", "SwitchML")

local sizes = { [0] = 32, [1] = 64, [3] = 256, [7] = 0 }
local types = { [1] = "everyone", [2] = "to one", [3] = "from one" }

local f = switchml.fields
f.type = ProtoField.uint8("switchml.type", "Message type", base.DEC, types, 0xf0)
f.unused = ProtoField.uint8("switchml.unused", "Unused", base.DEC, nil, 0x08)
f.size = ProtoField.uint8("switchml.size", "Size", base.DEC, { [0] = "32 elements", [1] = "64 elements", [3] = "256 elements",
  [7] = "credit" }, 0x07)
f.job = ProtoField.uint8("switchml.job", "Job number")
f.id = ProtoField.uint32("switchml.id", "Packet id")
f.set = ProtoField.uint16("switchml.set", "Set", base.DEC, nil, 0x8000)
f.slot = ProtoField.uint16("switchml.slot", "Slot", base.DEC, nil, 0x7fff)
f.e0 = ProtoField.int8("switchml.e0", "Exponent 0")
f.e1 = ProtoField.int8("switchml.e1", "Exponent 1")
f.worker = ProtoField.uint16("switchml.worker", "Worker that gives or takes alone")
f.element = ProtoField.int32("switchml.element", "Element")
local malformed = ProtoExpert.new("switchml.malformed", "Not of SwitchML's form", expert.group.MALFORMED, expert.severity.ERROR)
switchml.experts = { malformed }

function switchml.dissector(buffer, pinfo, tree)
  local header_bytes = 10
  if buffer:len() < header_bytes then return 0 end
  local first = buffer(0, 1):uint()
  local type, elements = math.floor(first / 16), sizes[first % 8]
  if type ~= 1 then header_bytes = 12 end
  local branch = tree:add(switchml, buffer())
  branch:add(f.type, buffer(0, 1))
  branch:add(f.unused, buffer(0, 1))
  branch:add(f.size, buffer(0, 1))
  if types[type] == nil or first % 16 >= 8 or elements == nil or (type == 1 and elements == 0)
      or buffer:len() < header_bytes + 4 * elements then
    branch:add_proto_expert_info(malformed)
    return buffer:len()
  end
  branch:add(f.job, buffer(1, 1))
  branch:add(f.id, buffer(2, 4))
  branch:add(f.set, buffer(6, 2))
  branch:add(f.slot, buffer(6, 2))
  branch:add(f.e0, buffer(8, 1))
  branch:add(f.e1, buffer(9, 1))
  if type ~= 1 then branch:add(f.worker, buffer(10, 2)) end
  for i = 0, elements - 1 do
    branch:add(f.element, buffer(header_bytes + 4 * i, 4)):append_text(" [" .. i .. "]")
  end
  pinfo.cols.protocol = "SwitchML"
  pinfo.cols.info = string.format("slot %d set %d, %d elements", buffer(6, 2):uint() % 0x8000,
    math.floor(buffer(6, 2):uint() / 0x8000), elements)
  return header_bytes + 4 * elements
end

for port = 0xbee0, 0xbeef do
  DissectorTable.get("udp.port"):add(port, switchml)
end

-- OmniReduce's blocks (switch/wire/sparse.h).
local sparse = Proto("omnireduce", "OmniReduce through a switch")

local s = sparse.fields
s.round = ProtoField.uint32("omnireduce.round", "Round of the slot")
s.set = ProtoField.uint16("omnireduce.set", "Set", base.DEC, nil, 0x8000)
s.slot = ProtoField.uint16("omnireduce.slot", "Slot", base.DEC, nil, 0x7fff)
s.next = ProtoField.uint32("omnireduce.next", "Next block")
s.type = ProtoField.uint8("omnireduce.type", "Type", base.DEC, { [1] = "int32" })
s.element = ProtoField.int32("omnireduce.element", "Element")
local not_sparse = ProtoExpert.new("omnireduce.malformed", "Not of OmniReduce's form", expert.group.MALFORMED, expert.severity.ERROR)
sparse.experts = { not_sparse }

local blocks = { [0] = true, [32] = true, [64] = true, [256] = true }

function sparse.dissector(buffer, pinfo, tree)
  local header_bytes = 11
  if buffer:len() < header_bytes then return 0 end
  local elements = (buffer:len() - header_bytes) / 4
  local branch = tree:add(sparse, buffer())
  branch:add(s.round, buffer(0, 4))
  branch:add(s.set, buffer(4, 2))
  branch:add(s.slot, buffer(4, 2))
  branch:add(s.next, buffer(6, 4))
  branch:add(s.type, buffer(10, 1))
  if buffer(10, 1):uint() ~= 1 or not blocks[elements] then
    branch:add_proto_expert_info(not_sparse)
    return buffer:len()
  end
  for i = 0, elements - 1 do
    branch:add(s.element, buffer(header_bytes + 4 * i, 4)):append_text(" [" .. i .. "]")
  end
  pinfo.cols.protocol = "OmniReduce"
  pinfo.cols.info = string.format("slot %d set %d round %d, %d elements", buffer(4, 2):uint() % 0x8000,
    math.floor(buffer(4, 2):uint() / 0x8000), buffer(0, 4):uint(), elements)
  return buffer:len()
end

DissectorTable.get("udp.port"):add(0xbe80, sparse)

local roce = Proto("switchml_roce", "SwitchML over RoCEv2")

local g = roce.fields
g.opcode = ProtoField.uint8("switchml_roce.opcode", "Opcode", base.HEX, { [0x26] = "first", [0x27] = "middle", [0x28] = "last",
  [0x29] = "last with immediate", [0x2a] = "only", [0x2b] = "only with immediate" })
g.worker = ProtoField.uint8("switchml_roce.worker", "Worker", base.DEC, nil, 0x1f)
g.queue_pair = ProtoField.uint16("switchml_roce.queue_pair", "Queue pair", base.DEC, nil, 0x01ff)
g.sequence = ProtoField.uint24("switchml_roce.sequence", "Sequence number")
g.address = ProtoField.uint64("switchml_roce.address", "Address", base.HEX)
g.slot = ProtoField.uint16("switchml_roce.slot", "Slot", base.DEC, nil, 0xfffe)
g.set = ProtoField.uint16("switchml_roce.set", "Set", base.DEC, nil, 0x0001)
g.length = ProtoField.uint32("switchml_roce.length", "Length of the message")
g.message = ProtoField.uint16("switchml_roce.message", "Message")
g.e0 = ProtoField.int8("switchml_roce.e0", "Exponent 0")
g.e1 = ProtoField.int8("switchml_roce.e1", "Exponent 1")
g.element = ProtoField.int32("switchml_roce.element", "Element")

local roce_elements, bth = 256, 42

-- Runs after all others: Wireshark's own reading of the packet is kept.
function roce.dissector(buffer, pinfo, tree)
  if buffer:len() < bth + 12 or buffer(12, 2):uint() ~= 0x0800 or buffer(14, 1):uint() ~= 0x45 or buffer(23, 1):uint() ~= 17
      or buffer(36, 2):uint() ~= 4791 then return end
  local opcode = buffer(bth, 1):uint()
  if opcode < 0x26 or opcode > 0x2b then return end
  local begins = opcode == 0x26 or opcode >= 0x2a
  local immediate = opcode == 0x29 or opcode == 0x2b
  local at = bth + 12
  local values = at + (begins and 16 or 0) + (immediate and 4 or 0)
  if buffer:len() < values + 4 * roce_elements + 4 then return end
  local branch = tree:add(roce, buffer(bth))
  branch:add(g.opcode, buffer(bth, 1))
  branch:add(g.worker, buffer(bth + 5, 1))
  branch:add(g.queue_pair, buffer(bth + 6, 2))
  branch:add(g.sequence, buffer(bth + 9, 3))
  if begins then
    branch:add(g.address, buffer(at, 8))
    branch:add(g.slot, buffer(at + 10, 2))
    branch:add(g.set, buffer(at + 10, 2))
    branch:add(g.length, buffer(at + 12, 4))
    at = at + 16
  end
  if immediate then
    branch:add(g.message, buffer(at, 2))
    branch:add(g.e0, buffer(at + 2, 1))
    branch:add(g.e1, buffer(at + 3, 1))
  end
  for i = 0, roce_elements - 1 do
    branch:add(g.element, buffer(values + 4 * i, 4)):append_text(" [" .. i .. "]")
  end
end

register_postdissector(roce)
