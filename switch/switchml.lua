-- Wireshark and tshark: SwitchML over UDP, as switch/switchml.h describes it.
--
--   tshark -X lua_script:switchml.lua -r FILE.pcap -T fields -e switchml.slot -e switchml.element
--
-- Packets to a switch are known by its UDP ports, results by the same ports as source.

local switchml = Proto("switchml", "SwitchML")

local sizes = { [0] = 32, [1] = 64, [3] = 256 }

local f = switchml.fields
f.type = ProtoField.uint8("switchml.type", "Message type", base.DEC, nil, 0xf0)
f.unused = ProtoField.uint8("switchml.unused", "Unused", base.DEC, nil, 0x08)
f.size = ProtoField.uint8("switchml.size", "Size", base.DEC, { [0] = "32 elements", [1] = "64 elements", [3] = "256 elements" }, 0x07)
f.job = ProtoField.uint8("switchml.job", "Job number")
f.id = ProtoField.uint32("switchml.id", "Packet id")
f.set = ProtoField.uint16("switchml.set", "Set", base.DEC, nil, 0x8000)
f.slot = ProtoField.uint16("switchml.slot", "Slot", base.DEC, nil, 0x7fff)
f.e0 = ProtoField.int8("switchml.e0", "Exponent 0")
f.e1 = ProtoField.int8("switchml.e1", "Exponent 1")
f.element = ProtoField.int32("switchml.element", "Element")
local malformed = ProtoExpert.new("switchml.malformed", "Not of SwitchML's form", expert.group.MALFORMED, expert.severity.ERROR)
switchml.experts = { malformed }

local header_bytes = 10

function switchml.dissector(buffer, pinfo, tree)
  if buffer:len() < header_bytes then return 0 end
  local first = buffer(0, 1):uint()
  local elements = sizes[first % 8]
  local branch = tree:add(switchml, buffer())
  branch:add(f.type, buffer(0, 1))
  branch:add(f.unused, buffer(0, 1))
  branch:add(f.size, buffer(0, 1))
  if math.floor(first / 8) ~= 2 or elements == nil or buffer:len() < header_bytes + 4 * elements then
    branch:add_proto_expert_info(malformed)
    return buffer:len()
  end
  branch:add(f.job, buffer(1, 1))
  branch:add(f.id, buffer(2, 4))
  branch:add(f.set, buffer(6, 2))
  branch:add(f.slot, buffer(6, 2))
  branch:add(f.e0, buffer(8, 1))
  branch:add(f.e1, buffer(9, 1))
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
