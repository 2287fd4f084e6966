// The style sheet of a page, in it: light and dark as the reader's system is, light on paper. It
// has no '<' and no '&', so that it may stand in XML.
//
// Threading: a constant.
#pragma once

#include <string_view>

namespace ghostrank {

inline constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b2230; --faint: #5d6778; --line: #d9dee6; --panel: #f5f7fa;
  --heat: #08306b; --compute: #3f7fc4; --exposed: #e0803a; --bubble: #a06bb5; --rest: #b4bcc8; --on: #ffffff; --dot: #d95f02;
  --good: #1a7f4b; --bad: #c0341d; --model: #35618f; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e4e8ef; --faint: #98a3b5; --line: #333c4a; --panel: #1c222c;
  --heat: #6db3ff; --compute: #5b9ae0; --exposed: #ee9653; --bubble: #bd8ad0; --rest: #5c6778; --on: #10141a; --dot: #ff9a4d;
  --good: #4cc38a; --bad: #ff7a66; --model: #86b4e3; } }
@media print { :root { color-scheme: light; --paper: #ffffff; --ink: #000000; --faint: #444444; --line: #cccccc; --panel: #ffffff;
  --heat: #08306b; --compute: #3f7fc4; --exposed: #e0803a; --bubble: #a06bb5; --rest: #b4bcc8; --on: #ffffff; --dot: #d95f02;
  --good: #1a7f4b; --bad: #c0341d; --model: #35618f; }
  section, figure, tr { break-inside: avoid; } details { break-before: auto; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.75rem 1.5rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.12rem; margin: 2.1rem 0 .7rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
p { margin: .35rem 0; overflow-wrap: anywhere; }
.trust { border-left: .35rem solid var(--faint); background: var(--panel); padding: .6rem .9rem; margin: .9rem 0; font-weight: 600; }
.good { border-color: var(--good); } .bad { border-color: var(--bad); } .modelled { border-color: var(--model); }
.faint { color: var(--faint); }
.cards { display: flex; flex-wrap: wrap; gap: .7rem; margin: 1rem 0; }
.cards div { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .9rem; min-width: 9rem; }
.cards b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.cards span { color: var(--faint); font-size: .85rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; margin: .4rem 0; }
th, td { text-align: left; vertical-align: top; padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--faint); font-weight: 600; white-space: nowrap; }
.number { text-align: right; white-space: nowrap; }
.facts th { color: var(--faint); font-weight: 500; white-space: nowrap; }
.facts td { overflow-wrap: anywhere; }
.findings td { padding-bottom: .55rem; }
.findings ul { margin: .15rem 0; padding-left: 1.1rem; color: var(--faint); }
.findings p { margin: .15rem 0; }
figure { margin: 1rem 0; }
figcaption { color: var(--faint); font-size: .88rem; margin-top: .25rem; }
.beside { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; align-items: flex-start; }
.beside > * { flex: 0 1 auto; max-width: 100%; }
svg { display: block; max-width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, "Segoe UI", Roboto, Arial, sans-serif; }
svg .faint { fill: var(--faint); } svg .on { fill: var(--on); }
svg .grid { stroke: var(--line); } svg .axis { stroke: var(--faint); }
svg .compute { fill: var(--compute); } svg .exposed { fill: var(--exposed); } svg .bubble { fill: var(--bubble); } svg .rest { fill: var(--rest); }
svg .heat { fill: var(--heat); } svg .frame { fill: none; stroke: var(--line); }
svg .dot { fill: var(--dot); fill-opacity: .8; } svg .interval { fill: var(--compute); fill-opacity: .25; } svg .median { stroke: var(--compute); stroke-width: 2.5; }
svg .sent { fill: var(--compute); } svg .received { fill: var(--exposed); } svg .received-line { stroke: var(--exposed); stroke-width: 2; }
details { margin: .6rem 0; border: 1px solid var(--line); border-radius: .5rem; padding: .45rem .9rem; }
summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
pre, code { font: .86rem/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { background: var(--panel); padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.drawn > svg { width: 36rem; } .drawn > svg > rect:first-of-type { fill: none; }
.drawn [stroke="black"] { stroke: var(--faint); } .drawn [stroke="#dddddd"] { stroke: var(--line); }
.drawn [fill="#c6dbef"] { fill: var(--compute); fill-opacity: .25; } .drawn [stroke="#08306b"] { stroke: var(--compute); }
.drawn [fill="#08306b"] { fill: var(--compute); } .drawn text[fill="#d95f02"] { fill: var(--dot); }
)";

}  // namespace ghostrank
